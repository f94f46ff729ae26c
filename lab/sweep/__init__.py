"""Many trials at once: on the cores of this machine, or on the workers of a Dask cluster.

A trial is a simulation that depends on nothing but its values, so the outcomes are the same whoever runs them, in the
order of the trials.
"""

from lab.sweep.grid import grid, table_row
from lab.sweep.runners import ClusterError, on_cluster, on_processes

__all__ = ["ClusterError", "grid", "on_cluster", "on_processes", "table_row"]
