"""The scheduler and its loop, in the standard library alone, so that they run in CPython, in CI and in a browser."""

from lab.core.arrivals import Arrivals, OpenLoop
from lab.core.block_pool import BlockPool
from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.errors import ConfigError, LabError, NoProgress, RequestRejected
from lab.core.loop import Clock, Executor, Loop, WallClock
from lab.core.plan import StepPlan, WaitReason
from lab.core.request import FinishReason, Request, RequestState, SamplingParams
from lab.core.scheduler import Scheduler
from lab.core.trace import RequestTimeline, StepRecord, Trace

__all__ = [
    "Arrivals",
    "BlockPool",
    "CacheConfig",
    "Clock",
    "ConfigError",
    "Executor",
    "FinishReason",
    "LabError",
    "Loop",
    "NoProgress",
    "OpenLoop",
    "Request",
    "RequestRejected",
    "RequestState",
    "RequestTimeline",
    "SamplingParams",
    "Scheduler",
    "SchedulerConfig",
    "StepPlan",
    "StepRecord",
    "Trace",
    "WaitReason",
    "WallClock",
]
