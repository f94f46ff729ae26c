"""Chapter 2: how many fit, and what is measured; quiz_preemption has what becomes of them if too many are let in."""

from lab.core.config import CacheConfig, SchedulerConfig
from lab.live.knobs import Choice, Slider, Values
from lab.live.quiz import Option, Posed, Question, Quiz, Reason, by_name, by_number, whole
from lab.live.quiz_preemption import COST, at_once, pose_pause, pose_throughput, pose_useful, run
from lab.live.words import Both, same
from lab.policies import POLICIES
from lab.sim import simulate
from lab.sim.arrivals import ClosedLoop

BLOCK = CacheConfig(1).block_size
CLIENTS = 32


def pose_fit(values: Values) -> Posed:
    blocks, prompt, output = (int(values[name]) for name in ("blocks", "prompt", "output"))
    config = SchedulerConfig(2**20, max_num_seqs=1000)
    scheduler = POLICIES["vllm"](config, CacheConfig(blocks))
    trace = simulate(at_once(2 * blocks * BLOCK // prompt, prompt, output), scheduler, COST)
    admitted = len(trace.steps[0].num_tokens)
    together = next(len(step.finished) for step in trace.steps if step.finished)
    slots = prompt + output - 1  # the last token is never fed
    each = -(-slots // BLOCK)
    return by_number(
        Both(
            f"{blocks} 个 KV 块，每块 {BLOCK} 个槽位。一样的请求同时到来，提示词 {prompt} 个词元，输出 {output} 个。"
            "最多几个能一起走到终点？",
            f"{blocks} KV blocks of {BLOCK} slots. Equal requests arrive at once, with prompts of {prompt} "
            f"and outputs of {output} tokens. How many can reach their end together?",
        ),
        whole("个"),
        Reason(
            together,
            f"结束时每个占 {prompt} + {output} - 1 个槽位，即 {each} 块：块不能合用。",
            f"At its end each holds {prompt} + {output} - 1 slots, which are {each} blocks: no two share one.",
        ),
        Reason(admitted, "放得进来的有这么多，但它们还要长大。", "So many are let in, but they have yet to grow."),
        Reason(
            blocks * BLOCK // slots,
            "按槽位算是这样，可是块不能合用。",
            "So it is by slots, but no two share a block.",
        ),
        Reason(blocks * BLOCK // output, "提示词也占着块。", "Prompts hold blocks too."),
    )


OPEN_LOOP = Both(
    "开环才这样想：来多少与答得多快无关。", "That is an open loop, where requests come at a rate of their own."
)
TIMES = [
    Option("longer", Both("更长", "longer"), OPEN_LOOP),
    Option("same", Both("一样", "the same"), OPEN_LOOP),
    Option("shorter", Both("更短", "shorter"), OPEN_LOOP),
]


def pose_closed(values: Values) -> Posed:
    output = int(values["output"])
    short, long = (run(ClosedLoop(at_once(512, 1024, n), CLIENTS), 128, 10_000, budget=2048) for n in (1, output))
    rates = [f"{one.finished / one.duration:.1f}" for one in (short, long)]
    means = [f"{1e3 * one.ttft.mean:.2f} ms" for one in (short, long)]
    return by_name(
        Both(
            f"压测：{CLIENTS} 个客户端，收到回答才发下一个请求，提示词 1024 个词元。"
            f"输出从 1 个词元改成 {output} 个，首词元时延的平均值变得怎样？",
            f"A benchmark: {CLIENTS} clients, each of which waits for its answer before it sends the next request, "
            f"with prompts of 1024 tokens. Outputs go from 1 token to {output}. "
            "What becomes of the mean time to first token?",
        ),
        TIMES,
        "shorter" if long.ttft.mean < short.ttft.mean else "longer",
        Both(
            f"平均从 {means[0]} 到 {means[1]}：客户端都在等回答，"
            f"每秒到来的请求从 {rates[0]} 个变成 {rates[1]} 个，量到的是负载。",
            f"The mean goes from {means[0]} to {means[1]}: clients wait for their answers, {rates[1]} "
            f"requests come per second in place of {rates[0]}, and what is measured is the load.",
        ),
    )


QUIZ = Quiz(
    "admission-control",
    (
        Question("quiz-pause", (Slider("max_num_seqs", same("max_num_seqs"), (12, 16, 32, 64), 32),), pose_pause),
        Question(
            "quiz-throughput",
            (
                Choice(
                    "load",
                    Both("提示词与准入", "prompts and admission"),
                    {
                        "short": Both("短", "short"),
                        "long, whole prompt": Both("长，整条准入", "long, whole prompt"),
                        "long, first chunk": Both("长，首块准入", "long, first chunk"),
                    },
                    "long, first chunk",
                ),
            ),
            pose_throughput,
        ),
        Question(
            "quiz-useful", (Slider("blocks", Both("KV 块", "KV blocks"), (600, 666, 748, 800), 748),), pose_useful
        ),
        Question(
            "quiz-fit",
            (
                Slider("blocks", Both("KV 块", "KV blocks"), (250, 500, 1000), 1000),
                Slider("prompt", Both("提示词的词元", "tokens of a prompt"), (100, 200, 300, 500), 300),
                Slider("output", Both("输出的词元", "tokens of an output"), (50, 100, 200, 500), 200),
            ),
            pose_fit,
        ),
        Question(
            "quiz-closed", (Slider("output", Both("输出的词元", "tokens of an output"), (4, 16, 64), 64),), pose_closed
        ),
    ),
)
