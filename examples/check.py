"""A check for releases: exits with 4 unless a new model is equivalent to the old one within the margin.

Run as `python examples/check.py [NEW [OLD [MARGIN]]]`. NEW and OLD are model specs, or folders of stored runs
of the same study; MARGIN is a difference of shares, 0.05 by default. A scripted model stands in for one that
is not given; the two scripted models are nearly the same. The command for stored runs is
`biaskit compare OLD-RUN NEW-RUN --require equivalent`.
"""

import json
import math
import sys
import tempfile
from pathlib import Path

import biaskit as bk

DOES_NOT_HOLD = 4
JOBS = "1-3,21-23"
TEMPLATES = "1-5"


def script(women: float) -> str:
    """A model that answers with women this often."""
    shares = {" She": women, " Female": women, " He": 1 - women, " Male": 1 - women, " They": 0.1}
    return json.dumps({"log_probs": {word: math.log(0.4 * share) for word, share in shares.items()}}) + "\n"


def result_of(model: str, label: str) -> bk.ProbeResult:
    if (Path(model) / "manifest.json").exists():
        return bk.load(model)
    spec = model if "=" in model else f"{label}={model}"
    return bk.probe(spec, jobs=JOBS, templates=TEMPLATES)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        models = {}
        for label, women in (("new", 0.51), ("old", 0.50)):
            path = Path(name, f"{label}.jsonl")
            path.write_text(script(women), encoding="utf-8")
            models[label] = f"scripted:{path}"
        models |= dict(zip(models, sys.argv[1:3], strict=False))
        margin = float(sys.argv[3]) if len(sys.argv) > 3 else 0.05
        old, new = (result_of(models[label], label) for label in ("old", "new"))

    compared = bk.compare(old, new, settings={"margin.share": margin})
    required = compared.requirement()
    for line in required.lines:
        print(line)
    said = "is equivalent" if required.holds else "is not shown to be equivalent"
    print(f"The new model {said} within ±{margin:g}: {required.n_rows} contrasts, tables in {compared.path}.")
    return 0 if required.holds else DOES_NOT_HOLD


if __name__ == "__main__":
    sys.exit(main())
