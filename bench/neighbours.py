"""What else the machine is doing: a time is only as good as the quiet around it."""

import ctypes
import os
import sys
import time
from pathlib import Path

TOLERATED = 0.1  # processors
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
MEMORY = {  # of glibc, 2.35 and later: in pages of 2 MiB, and never given back
    "malloc.hugetlb": 1,
    "malloc.mmap_threshold": 2**32,
    "malloc.trim_threshold": 2**34,
}
TUNABLES = {"GLIBC_TUNABLES": ":".join(f"glibc.{name}={value}" for name, value in MEMORY.items())}
SPINNING = {"GOMP_SPINCOUNT": "300000"}  # libgomp's default


def is_quiet(processors: float | None) -> bool:
    """Whether times can be trusted while others keep so many processors busy; None is not known."""
    return processors is not None and processors <= TOLERATED


class Neighbours:
    """Counts the processor time of other processes from its making on."""

    def __init__(self) -> None:
        self.load_average = os.getloadavg()[0]
        self._since = time.monotonic()
        self._busy = _busy_elsewhere()

    @property
    def processors(self) -> float | None:
        """How many processors the others kept busy, on average; None where the system doesn't say."""
        busy = _busy_elsewhere()
        if busy is None or self._busy is None:
            return None
        return max(0.0, busy - self._busy) / (time.monotonic() - self._since)

    def verdict(self) -> str:
        """One sentence on whether times taken since then can be trusted."""
        processors, load = self.processors, f"load average {self.load_average:.1f} at the start"
        if processors is None:
            return f"Not to be trusted: what else ran is unknown ({load})."
        seen = f"other processes kept {processors:.2f} processors busy ({load})"
        if not is_quiet(processors):
            return f"Not to be trusted: {seen}; run it again when the machine is quiet."
        return f"To be trusted: {seen}."


def quiet_processors(seconds: float = 2.0) -> int:
    """How many threads to time with: all processors if nobody else is on them for a while, else one."""
    neighbours = Neighbours()
    time.sleep(seconds)
    return (os.cpu_count() or 1) if is_quiet(neighbours.processors) else 1


def adopt_orphans() -> None:
    """From now on, what a process of ours leaves behind is our child, and its time ours, as it would be of nobody.

    A browser ends before the processes that drew its pages.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_as_on_a_quiet_machine() -> None:
    """Start the program anew, for it and its children, unless GLIBC_TUNABLES is set already: memory stays with those
    who have it, and threads wait for each other as OpenMP itself has it, where lab sends them to sleep sooner.

    On a virtual machine, memory that is given back and taken again is the host's to find anew, page by page: the same
    prefill took 1.1 to 1.6 times as long, most of all after a pause. glibc and libgomp read this once, at the start.
    """
    if sys.platform == "linux" and os.environ.keys().isdisjoint(TUNABLES):
        environment = os.environ | TUNABLES | SPINNING
        environment.pop("OMP_WAIT_POLICY", None)  # of lab
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def _busy_elsewhere() -> float | None:
    """Processor seconds since boot that were not ours, by /proc/stat (proc(5))."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_ = map(int, stat.read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq + steal - _ours()) / os.sysconf("SC_CLK_TCK")


def _ours() -> int:
    """Clock ticks of this process and of all that it started, those that have ended included (proc_pid_stat(5))."""
    ticks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        pid = int(path.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))  # user, system, and its children's
    ours = found = {os.getpid()}
    while found:
        found = {pid for pid, parent in parents.items() if parent in found}
        ours = ours | found
    return sum(ticks[pid] for pid in ours)
