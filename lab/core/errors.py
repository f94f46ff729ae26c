"""What can go wrong for a reason the caller can mend.

Every message is one line that names what was wrong, the numbers, and the way out. `python -m lab` prints it and exits
with status 2; anything that is not a `LabError` is a bug in lab and keeps its traceback.
"""


class LabError(Exception):
    """Base of all errors that a caller can mend."""


class ConfigError(LabError, ValueError):
    """A configuration that contradicts itself."""


class RequestRejected(LabError, ValueError):
    """A request that can never be served; nothing was allocated for it."""


class NoProgress(LabError, RuntimeError):
    """A step in which nothing could be planned although requests are waiting and none is running."""
