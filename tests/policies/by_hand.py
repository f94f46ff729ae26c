"""Requests and steps for loads small enough to check by hand."""

from lab.core import Request, SamplingParams, Scheduler, StepPlan


def request(name: str, prompt: int, max_tokens: int, **fields) -> Request:
    return Request(name, range(prompt), SamplingParams(max_tokens), **fields)


def step(scheduler: Scheduler) -> StepPlan:
    plan = scheduler.schedule()
    scheduler.update(plan, dict.fromkeys(plan.num_tokens, 0))
    return plan


def run_step(scheduler: Scheduler) -> dict[str, int]:
    return dict(step(scheduler).num_tokens)
