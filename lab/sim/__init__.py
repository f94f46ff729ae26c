"""The engine's own scheduler and loop, with a cost model in place of the model and a clock that jumps."""

from lab.sim.cost_model import CostModel, LinearCost
from lab.sim.simulate import SimulatedExecutor, VirtualClock, simulate

__all__ = ["CostModel", "LinearCost", "SimulatedExecutor", "VirtualClock", "simulate"]
