"""PyTorch code as a reader brings it: broken, and mended. What `check` must say stands in test_check.py."""

from threading import Thread

import torch
from torch.cuda import Event, Stream


def side_sum(mended: bool = False):
    """The example of PyTorch's notes on CUDA semantics, without and with its two lines marked NEW."""
    s = torch.cuda.Stream()
    a = torch.empty((100, 100), device="cuda").normal_(0.0, 1.0)
    if mended:
        s.wait_stream(torch.cuda.default_stream())
    with torch.cuda.stream(s):
        torch.sum(a)
    if mended:
        a.record_stream(s)


def event_handoff(late: bool):
    producer, consumer, ready = Stream(), Stream(), Event()
    with torch.cuda.stream(producer):
        x = torch.zeros(1024, device="cuda")
        if not late:
            x.add_(1)
        ready.record()
        if late:
            x.add_(1)
    consumer.wait_event(ready)
    with torch.cuda.stream(consumer):
        x * 2
    torch.cuda.synchronize()


def overwrite(wait: bool):
    copy = torch.cuda.Stream()
    block, saved = torch.ones(4096, device="cuda"), torch.empty(4096, pin_memory=True)
    copy.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(copy):
        saved.copy_(block, non_blocking=True)
    if wait:
        torch.cuda.current_stream().wait_stream(copy)
    block.zero_()
    torch.cuda.synchronize()


def freed(how: str = ""):
    s = torch.cuda.Stream()
    x = torch.ones(2**20, device="cuda")
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        y = x * 2
    if how == "home waits":
        torch.cuda.current_stream().wait_stream(s)
    if how == "record view":
        x[2:].record_stream(s)
    del x
    z = torch.zeros(2**20, device="cuda")
    torch.cuda.synchronize()
    return y, z


def branch(mended: bool):
    s = torch.cuda.Stream()

    def attention():
        with torch.cuda.stream(s):
            scores = torch.ones(512, 512, device="cuda")
        torch.cuda.current_stream().wait_stream(s)
        out = scores @ scores
        if mended:
            scores.record_stream(torch.cuda.current_stream())
        return out

    out = attention()
    with torch.cuda.stream(s):
        torch.zeros(512, 512, device="cuda")
    torch.cuda.synchronize()
    return out


def first_touch(wait: bool):
    s = torch.cuda.Stream()
    torch.ones(2**20, device="cuda").sum()
    x = torch.empty(2**20, device="cuda")
    if wait:
        s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        x.fill_(7)
    torch.cuda.synchronize()


def halves(overlap: bool):
    s = torch.cuda.Stream()
    kv = torch.zeros(64, 16, device="cuda")
    s.wait_stream(torch.cuda.current_stream())
    kv[:32].add_(1)
    with torch.cuda.stream(s):
        kv[31 if overlap else 32 :] = 2
    torch.cuda.synchronize()


def columns(same: bool):
    s = torch.cuda.Stream()
    kv = torch.zeros(64, 16, device="cuda")
    s.wait_stream(torch.cuda.current_stream())
    kv[:, 3].add_(1)
    with torch.cuda.stream(s):
        kv[..., 3 if same else 4].mul_(2)
    torch.cuda.synchronize()


def read_early(how: str = ""):
    x = torch.ones(1024, device="cuda")
    out = x.to("cpu", non_blocking=how != "blocking")
    if how == "event":
        copied = torch.cuda.Event()
        copied.record()
        copied.synchronize()
    return out.sum()


def staging(place: str):
    ids = torch.zeros(1024).pin_memory() if place == "pinned" else torch.zeros(1024)
    x = torch.empty(1024, device="cuda")
    for step in range(2):
        ids.fill_(step)
        x.copy_(ids, non_blocking=True)
    torch.cuda.synchronize()


def hidden_copies():
    x = torch.ones(64, 64, device="cuda")
    x.view(-1), x.t(), x.to(x.dtype), x.t().contiguous(), x.half(), torch.cat([x, x])
    x.clone()
    x[[0, 1]].copy_(x[:2])


def looks_at_a_value():
    x = torch.ones(4, device="cuda")
    if x.sum().item() > 3:
        x.add_(1)


def compares_a_value():
    total = torch.ones(4, device="cuda").sum().item()
    assert total == 4


def prints_a_value():
    total = torch.ones(4, device="cuda").sum().item()
    print(total, f"{total:.2f}")


def polls():
    done = torch.cuda.Event()
    done.record()
    while not done.query():
        pass


def captures():
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.ones(4, device="cuda")


def shape_of_values():
    return torch.ones(4, device="cuda").nonzero()


def another_device():
    torch.ones(4, device="cuda:1")


def moves_a_module():
    torch.nn.Linear(4, 4).cuda()


OUTSIDE = torch.ones(4)


def uses_a_tensor_from_outside():
    OUTSIDE.to("cuda")


def asks_the_accelerator():
    torch.accelerator.synchronize()


def starts_a_thread():
    work = Thread(target=lambda: None)
    work.start()


def own_mistake():
    torch.ones(4, device="cuda").view(3)
