"""What a step is to compute, and what may stand in its way."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

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


@dataclass(slots=True)
class PlanDraft:
    """A plan in the making: `left` of the token budget, and at most `cap` tokens of one request."""

    left: int
    cap: int
    plan: dict[str, int] = field(default_factory=dict)
    preempted: list[str] = field(default_factory=list)

    def cut(self, num_tokens: int) -> int:
        """How many of `num_tokens` of one request the limits let through."""
        return min(num_tokens, self.cap, self.left)
