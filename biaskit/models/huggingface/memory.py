"""How much memory is free for a model: the container's limit first, then the machine's."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> int | None:
    """Bytes that can still be taken, or None where the system does not say."""
    known = [value for value in (_cgroup_free(), _machine_free(), _limit_free()) if value is not None]
    return min(known) if known else None


def _machine_free() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):
        return None


def _limit_free() -> int | None:
    """What `ulimit -v` leaves of this process's addresses."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, IndexError):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - taken)


def _cgroup_free() -> int | None:
    """What the control group leaves; page cache counts as free, since the kernel gives it back."""
    for folder, limit, used in (
        (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            allowed = int((folder / limit).read_text())
            lines = (folder / "memory.stat").read_text().splitlines()
            known = dict(line.split() for line in lines)
            cached = int(known.get("inactive_file", known.get("total_inactive_file", 0)))
            taken = int((folder / used).read_text()) - cached
        except (OSError, ValueError):
            continue
        return max(0, allowed - taken)
    return None


def affordable(bytes_each: int, *, still_to_load: int, largest: int) -> int:
    """How many prompts or texts half of the free memory holds at once: `largest`, or a power of two below."""
    free = free_memory()
    if free is None:
        return largest
    held = max(1, int(0.5 * (free - still_to_load)) // max(1, bytes_each))
    return largest if held >= largest else 1 << (held.bit_length() - 1)
