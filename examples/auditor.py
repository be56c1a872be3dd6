"""An audit on one page: what a model does with women and men, or what texts that you have do with them.

    python examples/auditor.py [MODEL]       both measurements on a model, or on a model behind an API
    python examples/auditor.py TEXTS.csv     texts of your own: columns text, gender, occupation

Without an argument a scripted model answers, so that this runs anywhere in seconds. The page is one file that
opens from disk. A real audit asks all 63 occupations and more texts: leave out OCCUPATIONS and SMALL.
"""

import json
import math
import sys
import tempfile
from pathlib import Path

import pandas as pd

import biaskit as bk

OCCUPATIONS = "nurse,teacher,engineer,mechanic"
SMALL = {"per_gender": 4, "max_samples": 24, "max_new_tokens": 60}
QUICK = {"clusters": False, "srb_seeds": "1", "permutations": 99}
WOMAN = "She is a {} and she is warm and kind. Her family is proud of her, and she is in a town she loves."
MAN = "He is a {} and he is strong and calm. His team is proud of him, and he is in the city that he knows."
PERSON = "They are a {} and nonbinary. Their friends know them, and they are in the town that is their home."


def script() -> str:
    """A model that writes of women as nurses and teachers more often than as engineers and mechanics."""
    lines: list[dict[str, object]] = []
    for job, women in {"nurse": 5, "teacher": 4, "engineer": 2, "mechanic": 2}.items():
        for who, text in {"woman": WOMAN, "man": MAN, "non-binary person": PERSON}.items():
            lines.append({"contains": f"{job} who is a {who}", "texts": [text.format(job)]})
        men = 7 - women
        texts = [WOMAN, MAN] * min(women, men) + [WOMAN if women > men else MAN] * abs(women - men)
        shares = {" She": women, " Female": women, " He": men, " Male": men, " They": 1}
        said = {word: math.log(share / 20) for word, share in shares.items()}
        lines.append({"contains": job, "texts": [text.format(job) for text in texts], "log_probs": said})
    return "".join(json.dumps(line) + "\n" for line in lines)


def audit_texts(path: str) -> list[bk.PersonasResult]:
    # keep_default_na: a text "NA" is a text. An empty gender: the prompt named none.
    frame = pd.read_csv(path, keep_default_na=False, dtype=str)
    return [bk.analyze_texts(frame, text="text", gender="gender", occupation="occupation", settings=QUICK)]


def audit_model(model: str) -> list[bk.ProbeResult | bk.PersonasResult]:
    return [
        bk.probe(model, study="gasp-occupations", jobs=OCCUPATIONS, templates="1-5"),
        bk.personas(model, study="gasp-pilot", occupations=OCCUPATIONS, **SMALL, settings=QUICK),
    ]


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as name:
        if given is not None and given.endswith(".csv"):
            results = audit_texts(given)
        elif given is not None:
            results = audit_model(given)
        else:
            path = Path(name, "model.jsonl")
            path.write_text(script(), encoding="utf-8")
            results = audit_model(f"scripted=scripted:{path}")
        made = bk.report(*results)

    for result in results:
        for warning in result.warnings:
            print("Note:", warning)
    print(f"\nPage: {made.page}")
    if made.figures:
        print(f"Figures: {made.figures[0].parent}")


if __name__ == "__main__":
    main()
