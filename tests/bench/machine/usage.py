"""Read what a process has used of the machine; None where the system does not say."""

import os
from pathlib import Path


def cpu_s(pid: int) -> float | None:
    """Return the CPU time of a process and its threads so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float | None:
    """Return the resident memory of a process."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def load_average() -> float:
    """Return how busy the machine was in the last minute."""
    return os.getloadavg()[0]
