"""Texts held byte for byte to files in tests/golden, and the one way to renew them (its README)."""

from __future__ import annotations

import os

from places import GOLDEN


def golden(name: str, made: str) -> None:
    """Hold a text to its golden file; with BIASKIT_UPDATE_GOLDEN=1 the text becomes the file."""
    path = GOLDEN / name
    if os.environ.get("BIASKIT_UPDATE_GOLDEN") == "1":
        path.write_bytes(made.encode("utf-8"))
    expected = path.read_bytes().decode("utf-8")
    assert expected == made, f"tests/golden/{name} differs; its README says how to renew it"
