"""The scheduler's plans computed by a real model."""

from lab.engine.engine import Completion, Engine
from lab.engine.executor import TorchExecutor

__all__ = ["Completion", "Engine", "TorchExecutor"]
