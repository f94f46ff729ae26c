"""A minimal LLM inference runtime to learn from: one scheduler, one loop, on a GPU, on a CPU and in a simulator.

Nothing is imported here: `import lab.core` must work where there is neither torch nor numpy (in a browser, for one).
"""

import os

# A thread of PyTorch that waits for the others must not spin: where something else runs on the same cores, spinning
# makes a step 3 to 5 times slower. Read when torch is first imported; who set it already knows better.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
