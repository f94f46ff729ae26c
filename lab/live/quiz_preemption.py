"""Chapter 2: what becomes of a load past the wall, where requests are preempted. Loads and cost are the chapter's."""

from collections.abc import Iterable

from lab.core.arrivals import Arrivals
from lab.core.config import CacheConfig, SchedulerConfig
from lab.core.request import Request, SamplingParams
from lab.live.knobs import Values
from lab.live.quiz import Option, Posed, Reason, by_name, by_number, ms
from lab.live.words import Both, counted, same
from lab.policies import POLICIES
from lab.sim import LinearCost, simulate
from lab.sim.summary import Summary
from lab.sim.tally import summarize

COST = LinearCost()
BUDGET = 512


def at_once(n: int, prompt: int, output: int) -> list[Request]:
    return [Request(str(i), range(prompt), SamplingParams(output)) for i in range(n)]


def run(
    requests: Iterable[Request] | Arrivals, seqs: int, blocks: int, budget: int = BUDGET, policy: str = "vllm"
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
            "64 requests arrive at once, with a prompt and an output of 64 tokens each; 64 KV blocks of 16 slots are "
            f"enough for 8 of them to reach their end. max_num_seqs goes from 8 to {seqs}. "
            "What is the longest pause between two tokens of a request?",
        ),
        ms,
        Reason(
            after.longest_gap,
            f"{after.preemptions} 次抢占：被抢占的让出块，排队等别人结束，再从头算起。",
            f"{counted(after.preemptions, 'preemption')}: who is preempted gives up its blocks, queues until others "
            "end, and starts again.",
        ),
        Reason(before.longest_gap, "8 个并发时是这样，还没有撞墙。", "So it is with 8 at once, before the wall."),
        Reason(before.longest_gap * seqs / 8, "停顿不按并发的比例增长。", "The pause does not grow in proportion."),
        Reason(
            (COST.step_ms + BUDGET * COST.token_ms) / 1e3,
            "最满的一步也就这么长；被抢占的要等很多步。",
            "The fullest step takes no longer than that, but a preempted request waits for many.",
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
CHANGES = {  # of the throughput, by the least factor that is called so; and why it may be wrong to say so
    1.5: Option(
        "half", Both("升一半以上", "rises by half or more"), Both("块不够分。", "There are too few blocks for that.")
    ),
    1.02: Option(
        "little", Both("略升", "rises a little"), Both("这里的重算太贵。", "Recomputing costs too much here.")
    ),
    0.98: Option("same", Both("不变", "stays"), Both("抢占不会不留痕迹。", "Preemption leaves its traces.")),
    0.0: Option("falls", Both("下降", "falls"), Both("这里的重算便宜。", "Recomputing is cheap here.")),
}


def pose_throughput(values: Values) -> Posed:
    n, prompt, output, blocks, policy, few, more = SHAPES[str(values["load"])]
    before, after = (run(at_once(n, prompt, output), seqs, blocks, policy=policy) for seqs in (few, more))
    factor = after.output_tokens_per_s / before.output_tokens_per_s
    old, new = (f"{one.output_tokens_per_s:,.1f}" for one in (before, after))
    change, again = f"{factor - 1:+.0%}", f"{after.recomputed_tokens:,}"
    return by_name(
        Both(
            f"{n} 个请求同时到来，提示词 {prompt} 个词元，输出 {output} 个，{blocks} 个 KV 块；"
            f"准入时{GATES[policy].zh}。max_num_seqs 从 {few} 调到 {more}，越过了墙。吞吐怎样变？",
            f"{n} requests arrive at once, prompts of {prompt} and outputs of {output} tokens, {blocks} KV blocks; "
            f"one is let in {GATES[policy].en}. max_num_seqs goes from {few} to {more}, past the wall. "
            "What happens to the throughput?",
        ),
        list(CHANGES.values()),
        next(option.key for least, option in CHANGES.items() if factor >= least),
        Both(
            f"从 {old} 到 {new} 词元/s，{change}；抢占 {after.preemptions} 次，重算 {again} 个词元。",
            f"From {old} to {new} tokens/s, {change}, with {counted(after.preemptions, 'preemption')} "
            f"and {again} tokens computed again.",
        ),
    )


def pose_useful(values: Values) -> Posed:
    blocks = int(values["blocks"])
    first, whole_prompt = (run(at_once(32, 2048, 128), 6, blocks, policy=policy) for policy in ("first-chunk", "vllm"))
    per_step = [one.computed_tokens / one.steps for one in (first, whole_prompt)]
    return by_number(
        Both(
            f"32 个请求，提示词 2048 个词元，输出 128 个，{blocks} 个 KV 块，max_num_seqs 为 6，首块准入。"
            f"每一步平均算 {per_step[0]:.0f} 个词元，整条准入时是 {per_step[1]:.0f} 个。算过的词元里，有用的占多少？",
            f"32 requests with prompts of 2048 and outputs of 128 tokens, {blocks} KV blocks, max_num_seqs 6, and room "
            f"for the first chunk is enough to be let in. A step computes {per_step[0]:.0f} tokens on average; "
            f"with whole-prompt admission it is {per_step[1]:.0f}. What share of the computed tokens is useful?",
        ),
        lambda share: same(f"{share:.0f}%"),
        Reason(
            round(100 * first.useful_ratio),
            f"抢占 {first.preemptions} 次，重算 {first.recomputed_tokens:,} 个词元：满，不等于有用。",
            f"{counted(first.preemptions, 'preemption')}, {first.recomputed_tokens:,} tokens computed again: "
            "full is not useful.",
        ),
        Reason(100, "那要一次抢占也没有。", "For that nobody may be preempted."),
        Reason(
            round(100 * first.kv_mean_usage),
            "那是 KV 的平均使用率：占着，不等于有用。",
            "That is the mean KV use: held is not useful.",
        ),
        Reason(
            round(100 * first.output_tokens_per_s / whole_prompt.output_tokens_per_s),
            f"那是吞吐与整条准入之比：每步固定的 {COST.step_ms:g} ms 不随词元增加。",
            f"That is the throughput beside whole-prompt admission's: the fixed {COST.step_ms:g} ms of a step "
            "do not grow with its tokens.",
        ),
    )
