"""vLLM's scheduler with one setting changed."""

from dataclasses import replace

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.scheduler import Scheduler


class FirstChunk(Scheduler):
    """Admits what has room for its first chunk, as vLLM did before `scheduler_reserve_full_isl`."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(replace(config, reserve_full_prompt=False), cache)


class Priority(Scheduler):
    """`--scheduling-policy priority`: the lowest number is admitted first and preempted last."""

    def __init__(self, config: SchedulerConfig, cache: CacheConfig) -> None:
        super().__init__(replace(config, policy="priority"), cache)
