"""Chapter 1: who waits how long while a long prompt is computed. The load and the cost are those of its Gantt chart."""

from math import ceil

from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.metrics import request_metrics
from lab.core.request import Request, SamplingParams
from lab.core.scheduler import Scheduler
from lab.core.trace import Trace
from lab.live import gantt
from lab.live.knobs import Slider, Value, Values
from lab.live.quiz import Posed, Question, Quiz, Reason, by_number, ms, whole
from lab.live.words import Both
from lab.sim import simulate

PROMPT = Slider("prompt", Both("P 的词元", "tokens of P"), (512, 1024, 2048, 4096, 8192), 4096)
BUDGET = Slider("budget", Both("每步词元预算", "token budget of a step"), (64, 128, 256, 512, 1024), 512)

DEFAULTS = {knob.name: knob.default for knob in gantt.KNOBS}
REST = Both("零头也要一块。", "The rest needs a chunk too.")


def run(prompt: int, budget: int, **others: Value) -> Trace:
    return gantt.run(DEFAULTS | {"prompt": prompt, "budget": budget} | others)


def result(trace: Trace) -> gantt.Result:
    return gantt.result(trace, gantt.longest(trace))


def without_rest(tokens: int, chunk: int) -> int:
    """Chunks, if the rest is forgotten; a prompt shorter than a chunk is one all the same."""
    return max(1, tokens // chunk)


def pose_gap(values: Values) -> Posed:
    prompt, budget = int(values["prompt"]), int(values["budget"])
    step, token = f"{gantt.COST.step_ms:g} ms", f"{gantt.COST.token_ms:g} ms"

    def gap(policy: str, budget: int = budget) -> float:
        return result(run(prompt, budget, policy=policy)).longest_gap

    n = len(result(run(prompt, budget, policy="prefill-first")).chunks)
    return by_number(
        Both(
            f"A 在解码，P 带着 {prompt} 个词元的提示词到来。引擎把 P 切成 {budget} 个一块，P 没算完就不解码。"
            f"每步 {step}，每个词元再加 {token}。A 的两个词元之间，最长隔多久？",
            f"A is decoding when P arrives with a prompt of {prompt} tokens. The engine cuts P into chunks of {budget} "
            f"and does not decode before P is done. A step takes {step}, and {token} for each of its tokens. "
            "What is the longest time between two tokens of A?",
        ),
        ms,
        Reason(
            gap("prefill-first"),
            f"P 的 {n} 块一块接一块，其间没有 A 的位置，再加 A 自己的一步：只切块不混合，A 一点也没少等。",
            f"The chunks of P, {n} of them, follow one another with no room for A, and then comes A's own step. "
            "Chunks without mixing save A nothing.",
        ),
        Reason(gap("vllm"), "混合才是这样：每一步都带上 A。", "That takes mixing: A rides along in each step."),
        Reason(gap("vllm", prompt + 1), "不切块是这样：P 在一步里算完。", "That is without chunks: P is one step."),
        Reason(gap("alternate"), "轮流才是这样：P 一块，A 一步。", "That is by turns: a chunk of P, a step of A."),
    )


def pose_chunks(values: Values) -> Posed:
    prompt, budget, decoders = (int(values[name]) for name in ("prompt", "budget", "decoders"))
    left = budget - decoders
    return by_number(
        Both(
            f"像 vLLM 那样混合，每步预算 {budget} 个词元，{decoders} 个请求在解码。"
            f"P 的提示词有 {prompt} 个词元，要切成几块？",
            f"Steps are mixed as in vLLM, with a budget of {budget} tokens, and {decoders} requests are decoding. "
            f"How many chunks make up a prompt P of {prompt} tokens?",
        ),
        whole("块"),
        Reason(
            len(result(run(prompt, budget, decoders=decoders)).chunks),
            f"解码先拿走 {decoders} 个，每步留给 P 的只有 {left} 个；最后一块不满也算一块。",
            f"The decodes come first and take {decoders}, which leaves {left} a step for P; "
            "and a last chunk that is not full is a chunk.",
        ),
        Reason(
            without_rest(prompt, budget),
            "预算不全归 P，零头也要一块。",
            "The budget is not all P's, and the rest needs a chunk too.",
        ),
        Reason(without_rest(prompt, left), *REST),
        Reason(
            ceil((prompt + decoders) / budget),
            "解码的词元每步都要，不是只要一次。",
            "The decodes take their tokens in each step, and not just once.",
        ),
    )


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


QUIZ = Quiz(
    "chunked-prefill",
    (
        Question("quiz-gap", (PROMPT, BUDGET), pose_gap),
        Question(
            "quiz-chunks",
            (
                PROMPT,
                Slider("budget", BUDGET.label, BUDGET.marks, 128),
                Slider("decoders", Both("正在解码的请求", "requests that decode"), (1, 2, 4, 8, 12), 8),
            ),
            pose_chunks,
        ),
        Question("quiz-short", (PROMPT, BUDGET), pose_short),
        Question(
            "quiz-alone",
            (
                Slider("prompt", Both("提示词的词元", "tokens of the prompt"), (100, 200, 300, 500, 1000), 300),
                Slider("budget", BUDGET.label, (64, 128, 256, 512), 128),
                Slider("threshold", Both("阈值", "threshold"), (16, 32, 64), 32),
            ),
            pose_alone,
        ),
    ),
)
