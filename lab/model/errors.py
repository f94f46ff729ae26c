"""What can be wrong with a model."""

from lab.core.errors import LabError


class ModelError(LabError, ValueError):
    """A model that is not there, that lab has no code for, or whose files are wrong."""
