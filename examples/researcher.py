"""A table for a paper: what models give women and men, with intervals, a test, LaTeX and what to cite.

Run as `python examples/researcher.py [MODEL...]`. Without a model a scripted one answers, so that this runs
anywhere in seconds; `demo` is a small real model, `hf:ORG/NAME` one of the hub.
"""

import json
import math
import sys
import tempfile
from pathlib import Path

import biaskit as bk

JOBS = "nurse,secretary,receptionist,maid,plumber,carpenter,pilot,firefighter"
TEMPLATES = "1-5"
WOMEN = {"nurse": 0.8, "secretary": 0.7, "receptionist": 0.75, "maid": 0.9, "plumber": 0.1, "carpenter": 0.15}


def script() -> str:
    """A model that answers with women this often, a job a line; other jobs get a quarter."""
    lines = []
    for job, women in {**WOMEN, "": 0.25}.items():
        shares = {" She": women, " Female": women, " He": 1 - women, " Male": 1 - women, " They": 0.1}
        said = {word: math.log(0.4 * share) for word, share in shares.items()}
        lines.append(json.dumps({"contains": job, "log_probs": said}) + "\n")
    return "".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "model.jsonl")
        path.write_text(script(), encoding="utf-8")
        models = sys.argv[1:] or [f"scripted=scripted:{path}"]
        result = bk.probe(*models, jobs=JOBS, templates=TEMPLATES)

    groups = result.groups
    for row in groups[groups["gender"] == "female"].itertuples():
        print(
            f"{row.model}, {row.bias_type}, {row.job_group} jobs: {100 * row.share:.1f} % women"
            f" [{100 * row.ci_low:.1f}, {100 * row.ci_high:.1f}], coverage {row.coverage:.3f}"
        )
    # The crossed interval speaks of other jobs and other templates of the kind, not of these alone.
    tests = result.tests
    between_groups = tests[tests["family"] == "probe/share/crossed/groups"]
    for row in between_groups[between_groups["gender"] == "female"].itertuples():
        print(
            f"{row.model_a}, {row.bias_type}: {row.group_a} minus {row.group_b}"
            f" {100 * row.estimate:+.1f} points [{100 * row.ci_low:+.1f}, {100 * row.ci_high:+.1f}]"
        )
    for warning in result.warnings:
        print("Note:", warning)

    made = bk.report(result)
    print(f"\nFigures: {made.figures[0].parent}\nLaTeX tables: {made.latex[0].parent}, the first of them:\n")
    print(made.latex[0].read_text(encoding="utf-8"))
    print("Signature:", result.analysis()["signature"])
    print(f"BibTeX: biaskit cite {result.path}")


if __name__ == "__main__":
    main()
