"""Chapter 1: who waits how long while a long prompt is computed; quiz_threshold has what a chunk cap does about it."""

from math import ceil

from lab.live import gantt
from lab.live.knobs import Slider, Values
from lab.live.quiz import Posed, Question, Quiz, Reason, by_number, ms, whole
from lab.live.quiz_threshold import REST, pose_alone, pose_short, result, run, without_rest
from lab.live.words import Both, counted

PROMPT = Slider("prompt", Both("P 的词元", "tokens of P"), (1024, 2048, 4096, 8192), 4096)
BUDGET = Slider("budget", Both("每步词元预算", "token budget of a step"), (64, 128, 256, 512, 1024), 512)


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
            f"Steps are mixed as in vLLM, with a budget of {budget} tokens, and each has {counted(decoders, 'decode')} "
            f"in it. How many chunks make up a prompt P of {prompt} tokens?",
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
