"""From logits to the next token."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lab.core import Request


def sample(logits: Tensor, requests: Sequence[Request]) -> list[int]:
    """The next token of each request from its row of logits `[S, vocab]`; greedy at temperature 0, all in one call."""
    best = zip(logits.max(-1).indices.tolist(), logits, requests, strict=True)  # a third of the time of argmax
    return [token if request.sampling.temperature == 0 else draw(row, request) for token, row, request in best]


def draw(logits: Tensor, request: Request) -> int:
    """A token by chance, from `[vocab]` logits.

    It depends on the logits, on the request's seed and on how many tokens it has, and on nothing else: not on the
    batch, not on a preemption. It is drawn on the CPU in float64, so a seed means the same on every device.
    """
    sampling = request.sampling
    logits = logits.detach().cpu().double()
    probabilities = top_p(torch.softmax((logits - logits.max()) / sampling.temperature, dim=-1), sampling.top_p)
    generator = torch.Generator().manual_seed(sampling.seed * 1_000_003 + len(request.output_token_ids))
    return int(torch.multinomial(probabilities, 1, generator=generator))


def top_p(probabilities: Tensor, p: float) -> Tensor:
    """`[vocab]` probabilities with all but the smallest set of top ones that reaches p put to 0 (nucleus sampling,
    arXiv 1904.09751). The most likely token always stays; the result is not normalised."""
    if p == 1.0:
        return probabilities
    ordered, index = probabilities.sort(descending=True)
    outside = ordered.cumsum(-1) - ordered >= p  # the tokens before it reach p already
    return probabilities.scatter(-1, index[outside], 0.0)
