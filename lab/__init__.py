"""A minimal LLM inference runtime to learn from: one scheduler, one loop, on a GPU, on a CPU and in a simulator.

Nothing is imported here: `import lab.core` must work where there is neither torch nor numpy (in a browser, for one).
"""

import os

# How long a thread of PyTorch spins while it waits for the others, before it sleeps; read when torch is first imported.
# Left to spin (libgomp: 3 ms), it made a step 5 to 15 times as long where something else ran on the same cores; put to
# sleep at once, up to twice as long where nothing did. 10,000 turns, 0.1 ms, are up to twice and a third. The OpenMP of
# Intel and LLVM, which doesn't count turns, sleeps at once. Who set either already knows better.
if os.environ.keys().isdisjoint({"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}):
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "10000"}

__version__ = "0.1.0"
