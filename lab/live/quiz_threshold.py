"""Chapter 1: who gets what is left of a step, with a chunk cap and without. Load and cost are the Gantt chart's."""

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.metrics import request_metrics
from lab.core.request import Request, SamplingParams
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace
from lab.live import gantt
from lab.live.knobs import Value, Values
from lab.live.quiz import Posed, Reason, by_number, ms, whole
from lab.live.words import Both
from lab.sim import simulate

DEFAULTS = {knob.name: knob.default for knob in gantt.KNOBS}
REST = Both("零头也要一块。", "The rest needs a chunk too.")


def run(prompt: int, budget: int, **others: Value) -> Trace:
    return gantt.run(DEFAULTS | {"prompt": prompt, "budget": budget} | others)


def result(trace: Trace) -> gantt.Result:
    return gantt.result(trace, gantt.longest(trace))


def without_rest(tokens: int, chunk: int) -> int:
    """Chunks, if the rest is forgotten; a prompt shorter than a chunk is one all the same."""
    return max(1, tokens // chunk)


def pose_short(values: Values) -> Posed:
    prompt, budget = int(values["prompt"]), int(values["budget"])
    trace = run(prompt, budget, short="yes")
    ttft = result(trace).ttft_short
    threshold = result(run(prompt, budget, threshold=budget // 2, short="yes")).ttft_short
    others = [request for request in gantt.load(DEFAULTS | {"short": "yes"}) if request.request_id != gantt.LONG]
    alone = simulate(others, Scheduler(SchedulerConfig(budget, 16), CacheConfig(1000)), gantt.COST)
    done = trace.requests[gantt.LONG].token_times[-1]
    after = next(step.end for step in trace.steps if step.start >= done) - trace.requests[gantt.SHORT].arrival
    assert ttft is not None and threshold is not None
    return by_number(
        Both(
            f"同样的混合，预算 {budget}，不设 long_prefill_token_threshold。"
            f"P 带着 {prompt} 个词元先到，5 ms 后来了 S，只有 16 个词元。S 的首词元时延是多少？",
            f"The same mixing with a budget of {budget} and no long_prefill_token_threshold. P is there with {prompt} "
            "tokens, and 5 ms later S comes with 16. What is the time to first token of S?",
        ),
        ms,
        Reason(
            ttft,
            "P 在前面，每步把剩下的预算全拿走；要到 P 的最后一块，才有空位给 S。",
            "P is ahead of it and takes all that is left of the budget, until its last chunk leaves room for S.",
        ),
        Reason(
            threshold,
            f"那要设阈值，这里是 {budget // 2}：P 每步不得多拿，剩下的归 S。",
            f"That takes a threshold, here {budget // 2}: P may have no more of a step, and S gets what is left.",
        ),
        Reason(request_metrics(alone.requests[gantt.SHORT]).ttft, "那是 P 不在的时候。", "That would be without P."),
        Reason(
            after,
            "不必等到 P 之后的那一步：P 的最后一块没有占满预算，S 搭在同一步里。",
            "It need not wait for the step after P: the last chunk of P is not full, and S rides along.",
        ),
    )


def pose_alone(values: Values) -> Posed:
    prompt, budget, threshold = (int(values[name]) for name in ("prompt", "budget", "threshold"))

    def chunks(*others: Request) -> int:
        config = SchedulerConfig(budget, max_num_seqs=8, long_prefill_token_threshold=threshold)
        requests = [*others, Request("r", range(prompt), SamplingParams(1))]
        trace = simulate(requests, Scheduler(config, CacheConfig(1000)), gantt.COST)
        return sum("r" in step.num_tokens for step in trace.steps)

    return by_number(
        Both(
            f"只有一个请求，{prompt} 个词元的提示词，预算 {budget}，"
            f"long_prefill_token_threshold 为 {threshold}。切成几块？",
            f"One request alone, with a prompt of {prompt} tokens, a budget of {budget} "
            f"and a long_prefill_token_threshold of {threshold}. How many chunks?",
        ),
        whole("块"),
        Reason(
            chunks(),
            "阈值只在有别人时起作用：独自在场，块长就是预算。",
            "The threshold acts only when others are there: alone, a chunk is the budget.",
        ),
        Reason(
            chunks(Request("x", range(1), SamplingParams(99))),
            "旁边有人解码才是这样。",
            "That is beside one that decodes.",
        ),
        Reason(without_rest(prompt, budget), *REST),
        Reason(1, "那要预算不小于提示词。", "For that the budget must be as large as the prompt."),
    )
