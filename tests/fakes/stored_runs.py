"""Small runs of both measurements, for tests that need any run (`stored_probe`, `stored_personas`)."""

from __future__ import annotations

import json
from pathlib import Path

import biaskit as bk


def probe_run(home: Path) -> Path:
    """Two jobs, three templates, one scripted model."""
    lines = [
        {"contains": "nurse", "log_probs": {" She": -0.5, " He": -1.5}},
        {"contains": "", "log_probs": {" He": -0.4, " She": -1.8, " They": -2.5}},
    ]
    (home / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "ascii")
    asked = {"jobs": ["nurse", "plumber"], "templates": "1-3", "watcher": bk.Silent()}
    return bk.probe(f"m=scripted:{home / 'm.jsonl'}", **asked, out=home / "probe").path


def personas_run(home: Path) -> Path:
    """One occupation, texts of your own kind: no vectors are trained."""
    texts = [
        f"{who} is a {how} nurse and helps {n} people in the team of the town."
        for n in range(4)
        for who, how in (("She", "warm"), ("He", "bold"))
    ]
    return bk.analyze_texts(
        {"text": texts, "job": ["nurse"] * len(texts)},
        occupation="job",
        settings={"permutations": 19, "clusters": False},
        out=home / "personas",
        watcher=bk.Silent(),
    ).path
