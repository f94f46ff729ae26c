"""Chapter 2: how many to let in, and what a full machine is worth. Loads and cost are the chapter's."""

from collections.abc import Iterable

from lab.core.arrivals import Arrivals
from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.request import Request, SamplingParams
from lab.live.knobs import Choice, Slider, Values
from lab.live.quiz import Option, Posed, Question, Quiz, by_number, ms
from lab.live.words import Both, same
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from lab.sim.arrivals import ClosedLoop
from lab.sim.summary import Summary
from lab.sim.tally import summarize

COST = LinearCost()
BLOCK = CacheConfig(1).block_size


def at_once(n: int, prompt: int, output: int) -> list[Request]:
    return [Request(str(i), range(prompt), SamplingParams(output)) for i in range(n)]


def run(
    requests: Iterable[Request] | Arrivals, seqs: int, blocks: int, budget: int = 512, policy: str = "vllm"
) -> Summary:
    scheduler = POLICIES[policy](SchedulerConfig(budget, seqs), CacheConfig(blocks))
    return summarize(simulate(requests, scheduler, COST), blocks)


def pose_pause(values: Values) -> Posed:
    seqs = int(values["max_num_seqs"])
    before, after = (run(at_once(64, 64, 64), n, 64) for n in (8, seqs))
    return by_number(
        Both(
            "64 个请求同时到来，提示词和输出各 64 个词元；64 个 KV 块，每块 16 个槽位，够 8 个请求走到终点。"
            f"max_num_seqs 从 8 调到 {seqs}，一个请求的两个词元之间，最长停多久？",
            "64 requests arrive at once, with a prompt and an output of 64 tokens each; 64 KV blocks of 16 slots "
            "are enough "
            f"for 8 of them to reach their end. max_num_seqs goes from 8 to {seqs}. What is the longest pause "
            "between two "
            "tokens of a request?",
        ),
        ms,
        (
            after.longest_gap,
            Both(
                f"{after.preemptions} 次抢占：被抢占的让出块，排队等别人结束，再从头算起。",
                f"{after.preemptions} preemptions: who is preempted gives up its blocks, queues until others end, and "
                "starts again.",
            ),
        ),
        (before.longest_gap, Both("8 个并发时是这样，还没有撞墙。", "So it is with 8 at once, before the wall.")),
        (
            before.longest_gap * seqs / 8,
            Both("停顿不按并发的比例增长。", "The pause does not grow in proportion."),
        ),
        (
            (COST.step_ms + 512 * COST.token_ms) / 1e3,
            Both(
                "最满的一步也就这么长；被抢占的要等很多步。",
                "The fullest step takes no longer than that, but a preempted request waits for many.",
            ),
        ),
    )


SHAPES = {  # what differs: requests, tokens of a prompt and of an output, blocks, policy, max_num_seqs before and after
    "short": (64, 64, 64, 64, "vllm", 8, 12),
    "long, whole prompt": (32, 2048, 128, 666, "vllm", 4, 5),
    "long, first chunk": (32, 2048, 128, 666, "first-chunk", 4, 5),
}
GATES = {
    "vllm": Both("整条提示词放得下才放行", "if its whole prompt fits"),
    "first-chunk": Both("只看第一块放不放得下", "if its first chunk fits"),
}
CHANGES = (  # of the throughput: from what factor on, and why one may be wrong to say so
    (
        "half",
        1.5,
        Both("升一半以上", "rises by half or more"),
        Both("块不够分。", "There are too few blocks for that."),
    ),
    ("little", 1.02, Both("略升", "rises a little"), Both("这里的重算太贵。", "Recomputing costs too much here.")),
    ("same", 0.98, Both("不变", "stays"), Both("抢占不会不留痕迹。", "Preemption leaves its traces.")),
    ("falls", 0.0, Both("下降", "falls"), Both("这里的重算便宜。", "Recomputing is cheap here.")),
)


def pose_throughput(values: Values) -> Posed:
    n, prompt, output, blocks, policy, few, more = SHAPES[str(values["load"])]
    before, after = (run(at_once(n, prompt, output), seqs, blocks, policy=policy) for seqs in (few, more))
    factor = after.output_tokens_per_s / before.output_tokens_per_s
    right = next(key for key, least, _, _ in CHANGES if factor >= least)
    because = Both(
        f"从 {before.output_tokens_per_s:,.1f} 到 {after.output_tokens_per_s:,.1f} 词元/s，{100 * (factor - 1):+.0f}%；"
        f"抢占 {after.preemptions} 次，重算 {after.recomputed_tokens:,} 个词元。",
        f"From {before.output_tokens_per_s:,.1f} to {after.output_tokens_per_s:,.1f} tokens/s, "
        f"{100 * (factor - 1):+.0f}%, "
        f"with {after.preemptions} preemptions and {after.recomputed_tokens:,} tokens computed again.",
    )
    return Posed(
        Both(
            f"{n} 个请求同时到来，提示词 {prompt} 个词元，输出 {output} 个，{blocks} 个 KV 块；"
            f"准入时{GATES[policy].zh}。"
            f"max_num_seqs 从 {few} "
            f"调到 {more}，越过了墙。吞吐怎样变？",
            f"{n} requests arrive at once, prompts of {prompt} and outputs of {output} tokens, {blocks} KV blocks; "
            "one is let "
            f"in {GATES[policy].en}. max_num_seqs goes from {few} to {more}, past the wall. What happens to the "
            "throughput?",
        ),
        [Option(key, text, because if key == right else mistake) for key, _, text, mistake in CHANGES],
        right,
    )


def pose_useful(values: Values) -> Posed:
    blocks = int(values["blocks"])
    first, whole = (run(at_once(32, 2048, 128), 6, blocks, policy=policy) for policy in ("first-chunk", "vllm"))
    per_step = [one.computed_tokens / one.steps for one in (first, whole)]
    return by_number(
        Both(
            f"32 个请求，提示词 2048 个词元，输出 128 个，{blocks} 个 KV 块，max_num_seqs 为 6，首块准入。每一步"
            f"平均算 {per_step[0]:.0f} 个词元，整条准入时是 {per_step[1]:.0f} 个。算过的词元里，有用的占多少？",
            f"32 requests with prompts of 2048 and outputs of 128 tokens, {blocks} KV blocks, max_num_seqs 6, and "
            "room for "
            f"the first chunk is enough to be let in. A step computes {per_step[0]:.0f} tokens on average; with "
            "whole-prompt "
            f"admission it is {per_step[1]:.0f}. What share of the computed tokens is useful?",
        ),
        lambda share: same(f"{share:.0f}%"),
        (
            round(100 * first.useful_ratio),
            Both(
                f"抢占 {first.preemptions} 次，重算 {first.recomputed_tokens:,} 个词元：满，不等于有用。",
                f"{first.preemptions} preemptions, {first.recomputed_tokens:,} tokens computed again: full is not "
                "useful.",
            ),
        ),
        (100, Both("那要一次抢占也没有。", "For that nobody may be preempted.")),
        (
            round(100 * first.kv_mean_usage),
            Both("那是 KV 的平均使用率：占着，不等于有用。", "That is the mean KV use: held is not useful."),
        ),
        (
            round(100 * first.output_tokens_per_s / whole.output_tokens_per_s),
            Both(
                f"那是吞吐与整条准入之比：每步固定的 {COST.step_ms:g} ms 不随词元增加。",
                f"That is the throughput beside whole-prompt admission's: the fixed {COST.step_ms:g} ms of a step "
                "do not grow "
                "with its tokens.",
            ),
        ),
    )


def pose_fit(values: Values) -> Posed:
    blocks, prompt, output = (int(values[name]) for name in ("blocks", "prompt", "output"))
    config = SchedulerConfig(2**20, max_num_seqs=1000)
    scheduler = POLICIES["vllm"](config, CacheConfig(blocks))
    trace = simulate(at_once(2 * blocks * BLOCK // prompt, prompt, output), scheduler, COST)
    admitted = len(trace.steps[0].num_tokens)
    together = next(len(step.finished) for step in trace.steps if step.finished)
    return by_number(
        Both(
            f"{blocks} 个 KV 块，每块 {BLOCK} 个槽位。一样的请求同时到来，提示词 {prompt} 个词元，输出 {output} "
            "个。最多几个能一起"
            "走到终点？",
            f"{blocks} KV blocks of {BLOCK} slots. Equal requests arrive at once, with prompts of {prompt} and "
            "outputs of "
            f"{output} tokens. How many can reach their end together?",
        ),
        lambda n: Both(f"{n:.0f} 个", f"{n:.0f}"),
        (
            together,
            Both(
                f"结束时每个占 {prompt} + {output} - 1 个槽位，即 {-(-(prompt + output - 1) // BLOCK)} 块："
                "块不能合用。",
                f"At its end each holds {prompt} + {output} - 1 slots, which are "
                f"{-(-(prompt + output - 1) // BLOCK)} blocks: "
                "no two share one.",
            ),
        ),
        (admitted, Both("放得进来的有这么多，但它们还要长大。", "So many are let in, but they have yet to grow.")),
        (
            blocks * BLOCK // (prompt + output - 1),
            Both("按槽位算是这样，可是块不能合用。", "So it is by slots, but no two share a block."),
        ),
        (blocks * BLOCK // output, Both("提示词也占着块。", "Prompts hold blocks too.")),
    )


def pose_closed(values: Values) -> Posed:
    output = int(values["output"])

    def loop(output: int) -> Summary:
        return run(ClosedLoop(at_once(512, 1024, output), CLIENTS), 128, 10_000, budget=2048)

    short, long = loop(1), loop(output)
    rates = [one.finished / one.duration for one in (short, long)]
    right = "shorter" if long.ttft.mean < short.ttft.mean else "longer"
    because = Both(
        f"平均从 {ms(short.ttft.mean).zh} 到 {ms(long.ttft.mean).zh}：客户端都在等回答，每秒到来的请求从 "
        f"{rates[0]:.1f} 个变成 "
        f"{rates[1]:.1f} 个，量到的是负载。",
        f"The mean goes from {ms(short.ttft.mean).en} to {ms(long.ttft.mean).en}: clients wait for their answers, "
        f"{rates[1]:.1f} "
        f"requests come per second in place of {rates[0]:.1f}, and what is measured is the load.",
    )
    options = {
        "longer": Both("更长", "longer"),
        "same": Both("一样", "the same"),
        "shorter": Both("更短", "shorter"),
    }
    mistake = Both(
        "开环才这样想：来多少与答得多快无关。", "That is an open loop, where requests come at a rate of their own."
    )
    return Posed(
        Both(
            f"压测：{CLIENTS} 个客户端，收到回答才发下一个请求，提示词 1024 个词元。输出从 1 个词元改成 {output} 个，"
            "首词元时延的平均值变得怎样？",
            f"A benchmark: {CLIENTS} clients, each of which waits for its answer before it sends the next request, "
            "with prompts "
            f"of 1024 tokens. Outputs go from 1 token to {output}. What becomes of the mean time to first token?",
        ),
        [Option(key, text, because if key == right else mistake) for key, text in options.items()],
        right,
    )


CLIENTS = 32
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
        Question("quiz-useful", (Slider("blocks", Both("KV 块", "KV blocks"), (666, 748, 1000), 748),), pose_useful),
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
