"""What a step is to compute, and what may stand in its way."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lab.core.request import Request

NO_CAP = sys.maxsize


class WaitReason(Enum):
    """Why a request was not admitted in the last step."""

    MAX_SEQS = "max_seqs"  # max_num_seqs requests are running
    BUDGET = "budget"  # no token of the step's budget is left for it
    BLOCKS = "blocks"  # the KV blocks it needs are not free
    POLICY = "policy"  # a step that preempted admits nobody
    BEHIND_HEAD = "behind-head"  # it is not the head of the queue


@dataclass(frozen=True)
class StepPlan:
    """New tokens to compute in one step, by request, in the order in which they were planned."""

    num_tokens: Mapping[str, int]
    preempted: tuple[str, ...] = ()

    @property
    def total_tokens(self) -> int:
        return sum(self.num_tokens.values())


@dataclass
class PlanDraft:
    """A plan in the making: `left` of the token budget, and at most `cap` tokens of one request."""

    left: int
    cap: int
    plan: dict[str, int] = field(default_factory=dict)
    preempted: list[str] = field(default_factory=list)

    def num_new_tokens(self, request: Request) -> int:
        n = request.num_tokens - request.num_computed_tokens
        most = self.cap if self.cap < self.left else self.left  # not min(): it takes three times as long
        return n if n < most else most

    def add(self, request: Request, n: int) -> None:
        """Plan `n` tokens of the request, whose blocks it has, and count them as computed."""
        self.plan[request.request_id] = n
        self.left -= n
        request.num_computed_tokens += n

    def take_back(self, request: Request) -> None:
        """Undo `add`, if there was one."""
        n = self.plan.pop(request.request_id, 0)
        self.left += n
        request.num_computed_tokens -= n
