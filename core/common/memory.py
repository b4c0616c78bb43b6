"""Whether there is memory for what is asked, before it is asked for: where it runs out polars ends the process."""

from __future__ import annotations

from pathlib import Path


def available() -> float:
    """Bytes that this process may still take: what the system has left, within the limit of address space."""
    found = [float("inf")]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError, IndexError):
        pass  # not Linux: nothing is known
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            found.append(float(limit))
    except ImportError:  # not on Windows
        pass
    return min(found)


def require(needed: float) -> None:
    """Raise :class:`MemoryError` where ``needed`` bytes are surely more than there are."""
    if needed > available():
        raise MemoryError
