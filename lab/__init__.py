"""A minimal LLM inference runtime to learn from: one scheduler, one loop, on a GPU, on a CPU and in a simulator.

Nothing is imported here: `import lab.core` must work where there is neither torch nor numpy (in a browser, for one).
"""

__version__ = "0.1.0"
