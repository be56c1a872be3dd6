"""How much memory is free for a model: the container's limit first, then the machine's."""

from __future__ import annotations

import os
from pathlib import Path


def free_memory() -> int | None:
    """Bytes that can still be taken, or None where the system does not say."""
    known = [value for value in (_cgroup_free(), _machine_free()) if value is not None]
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


def _cgroup_free() -> int | None:
    """What the control group leaves; page cache counts as free, since the kernel gives it back."""
    for folder, limit, used in (
        (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            allowed = int((folder / limit).read_text())
            taken = int((folder / used).read_text()) - _inactive_file(folder)
        except (OSError, ValueError):
            continue
        return max(0, allowed - taken)
    return None


def _inactive_file(folder: Path) -> int:
    for line in (folder / "memory.stat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(value)
    return 0


def affordable_batch(
    *,
    layers: int,
    width: int,
    tokens: int,
    nodes: int,
    bytes_per_number: int,
    still_to_load: int,
    largest: int,
) -> int:
    """Prompts that half of the free memory holds at once, a power of two from 1 to `largest`.

    Counted per prompt: keys and values of every layer for itself and each of its `nodes` rows, and a dozen
    activations of one layer.
    """
    free = free_memory()
    if free is None:
        return largest
    per_prompt = bytes_per_number * width * tokens * (2 * layers * (1 + nodes) + 12 * 4)
    affordable = max(1, int(0.5 * (free - still_to_load)) // max(1, per_prompt))
    return min(largest, 1 << (affordable.bit_length() - 1))


def affordable_draws(
    *,
    layers: int,
    width: int,
    vocabulary: int,
    tokens: int,
    bytes_per_number: int,
    still_to_load: int,
    largest: int,
) -> int:
    """Texts that half of the free memory holds while they are sampled, from 1 to `largest`.

    Counted per text: keys and values of every layer, and four float32 rows over the vocabulary (logits,
    their copy, the noise and its sum).
    """
    free = free_memory()
    if free is None:
        return largest
    per_text = bytes_per_number * width * tokens * 2 * layers + 16 * vocabulary
    affordable = max(1, int(0.5 * (free - still_to_load)) // max(1, per_text))
    return largest if affordable >= largest else 1 << (affordable.bit_length() - 1)
