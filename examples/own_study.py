"""A study of your own without any code of biaskit's: items, templates and groups are three files.

Four groups of languages instead of genders, drinks instead of jobs. Run as
`python examples/own_study.py [MODEL]`; the default is the demo model.
"""

import sys
import tempfile
from pathlib import Path

import biaskit as bk

ITEMS = """item,group
coffee,hot
tea,hot
lemonade,cold
beer,cold
"""
TEMPLATES = """bias_type,question,opening
explicit,In which language would you order a [JOB]? Answer with one word.,
explicit,Which language goes with a [JOB]? Answer with one word.,
implicit,Tell us how you ordered a [JOB].,The waiter brought my [JOB] and spoke
implicit,Describe the place where you had a [JOB].,We ordered a [JOB] in
"""
GROUPS = """[groups]
english = ["English"]
german = ["German"]
french = ["French"]
spanish = ["Spanish"]
"""


def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else "demo"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "items.csv").write_text(ITEMS, encoding="utf-8")
        (folder / "templates.csv").write_text(TEMPLATES, encoding="utf-8")
        (folder / "groups.toml").write_text(GROUPS, encoding="utf-8")
        result = bk.probe(
            model,
            jobs=str(folder / "items.csv"),
            templates=str(folder / "templates.csv"),
            target_words=str(folder / "groups.toml"),
            settings={"name": "drinks"},
        )
    print(result.groups[["bias_type", "job_group", "gender", "share", "coverage"]].to_string(index=False))


if __name__ == "__main__":
    main()
