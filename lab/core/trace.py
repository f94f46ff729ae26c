"""What happened: one record per step, one timeline per request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.core.plan import WaitReason
from lab.core.request import FinishReason, Request


@dataclass(slots=True)
class StepRecord:
    """One step. Times are in seconds of the run's clock.

    `free_blocks` is counted after the step; the last four fields as the step was planned, before anything finished.
    """

    start: float
    end: float
    num_tokens: Mapping[str, int]
    preempted: tuple[str, ...]
    finished: tuple[str, ...]
    free_blocks: int
    used_blocks: int = 0
    num_running: int = 0
    num_waiting: int = 0
    head_waits_for: WaitReason | None = None


@dataclass(slots=True)
class RequestTimeline:
    """One request, in seconds of the run's clock: when it came, first ran, got each of its tokens and ended."""

    arrival: float
    num_prompt_tokens: int
    first_scheduled: float | None = None
    token_times: list[float] = field(default_factory=list)
    finished: float | None = None
    finish_reason: FinishReason | None = None
    num_computed_tokens: int = 0  # over all steps: above what was useful if anything was recomputed


@dataclass
class Trace:
    """All steps and requests of one run."""

    steps: list[StepRecord] = field(default_factory=list)
    requests: dict[str, RequestTimeline] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # why, by request

    def record_submit(self, request: Request) -> None:
        self.requests[request.request_id] = RequestTimeline(request.arrival, request.num_prompt_tokens)

    def record_refused(self, request: Request, reason: str) -> None:
        self.refused[request.request_id] = reason

    def record_step(self, step: StepRecord, sampled: Mapping[str, int]) -> None:
        self.steps.append(step)
        self.note(step, sampled)

    def note(self, step: StepRecord, sampled: Mapping[str, int]) -> None:
        """Note on the timelines what a step did for each request."""
        requests, end = self.requests, step.end
        for request_id, n in step.num_tokens.items():
            timeline = requests[request_id]
            timeline.num_computed_tokens += n
            if timeline.first_scheduled is None:
                timeline.first_scheduled = step.start
            if request_id in sampled:
                timeline.token_times.append(end)

    def record_finish(self, request_id: str, time: float, reason: FinishReason) -> None:
        timeline = self.requests[request_id]
        timeline.finished, timeline.finish_reason = time, reason
