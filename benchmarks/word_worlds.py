"""Which words a page names of a file whose departments have mostly women's, or mostly men's, letters.

    python benchmarks/word_worlds.py --out words.jsonl            # goes on where it stopped
    python benchmarks/word_worlds.py --out words.jsonl --table    # the table of what is there

A world is a file of 400 letters of four departments, two of them with 80 % women's letters, two with 80 %
men's. Every department has six words of its own, in 75 % of its letters. In a `null` world nothing else
differs; in a `marks` world seven more words are in 75 % of women's letters and 25 % of men's, and seven the
other way round, in a `few` world two and two. Each is analysed with the departments named (`within`) and
without (`pooled`), by the public face. `named`: words of sentences of the page; `listed`: words of the lists
that the page calls longer than chance. Both leave gendered words out.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import biaskit as bk
from biaskit.corpora.loaders import english_counts
from biaskit.measures.personas.findings.words import BEYOND, lists_of, surely_longer, words_of
from biaskit.measures.personas.texts.names import says_gender
from biaskit.records import ALL
from biaskit.report.findings import findings
from biaskit.stats.proportions import wilson
from biaskit.tables.query import apart_from, defined, where
from biaskit.workflow.report import _content

N_WORLDS = {"null": 400, "marks": 200, "few": 100}
N_LETTERS, SHARES = 400, {"nursing": 0.8, "engineering": 0.2, "sales": 0.8, "law": 0.2}  # of women's letters
OFTEN, SELDOM = 0.75, 0.25
WAYS = ("within", "pooled")
OWN = {
    "nursing": ("nursing", "ward", "hospital", "medicine", "shift", "clinic"),
    "engineering": ("engineering", "machine", "design", "steel", "bridge", "drawing"),
    "sales": ("sales", "customer", "market", "price", "order", "contract"),
    "law": ("law", "court", "case", "legal", "judge", "brief"),
}
MARKS = {
    "female": ("warm", "caring", "patient", "gentle", "devoted", "kind", "supportive"),
    "male": ("decisive", "driven", "confident", "ambitious", "bold", "strong", "brilliant"),
}
N_MARKS = {"null": 0, "marks": 7, "few": 2}  # of each gender
FAST: dict[str, Any] = {"clusters": False}


def plain_words() -> tuple[list[str], np.ndarray]:
    """The thousand most frequent words of English that name no gender, and how probable each is."""
    english = sorted(english_counts("table").items(), key=lambda item: -item[1])
    words = [word for word, _ in english[:1400] if word.isalpha() and len(word) > 1]
    others = {word for words in (*OWN.values(), *MARKS.values()) for word in words}
    names_none = ~says_gender(words, ())
    kept = [word for word, none in zip(words, names_none, strict=True) if none and word not in others][:1000]
    counts = np.array([dict(english)[word] for word in kept], dtype=np.float64)
    return kept, counts / counts.sum()


PLAIN, PROBABLE = plain_words()


def world(kind: str, seed: int) -> Iterator[dict[str, str]]:
    """Yield the letters of a file; each repeats words of its own."""
    rng = np.random.default_rng([seed, N_MARKS[kind]])
    for department, share in SHARES.items():
        for i in range(N_LETTERS // len(SHARES)):
            gender = "female" if i < share * N_LETTERS / len(SHARES) else "male"
            p = rng.gamma(2000 * PROBABLE)
            words = [*rng.choice(PLAIN, rng.integers(80, 160), p=p / p.sum())]
            words += [word for word in OWN[department] if rng.random() < OFTEN]
            for marked, of_gender in MARKS.items():
                often = OFTEN if marked == gender else SELDOM
                words += [word for word in of_gender[: N_MARKS[kind]] if rng.random() < often]
            pronouns = ("she", "her") if gender == "female" else ("he", "his")
            words += [*pronouns, pronouns[0]]
            yield {"text": " ".join(rng.permutation(words)), "Dept": department}


def found(kind: str, seed: int, way: str) -> dict[str, Any]:
    """Analyse one world, and read its page's sentences and lists."""
    columns = {"occupation": "Dept"} if way == "within" else {}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        bk.analyze_texts(list(world(kind, seed)), out=run, settings=FAST, watcher=bk.Silent(), **columns)
        content = _content([run], False, (), None, {}, None, bk.Silent())[0]
        (part,) = content.parts
        said = [finding.text for finding in findings(content) if finding.topic == "words"]
        lists = defined(lists_of(part), *BEYOND)
        over_all = where(lists, occupation=ALL) or lists
        longer = surely_longer(over_all)
        listed = {gender: words_of(part, longer, gender) for gender in MARKS}
        of_one = surely_longer(apart_from(lists, occupation=ALL))
    return {"named": re.findall("“(.*?)”", " ".join(said)), "listed": listed, "n_of_one": len(of_one)}


def shown(n: int, of: int) -> str:
    """Write a share with Wilson's interval, in %."""
    low, high = wilson(n, of) or (0.0, 1.0)
    return f"{100 * n / of:5.1f} [{100 * low:4.1f} to {100 * high:4.1f}]"


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield some lines for each kind of world and way of counting."""
    own = {word for words in OWN.values() for word in words}
    for kind, way in product(N_WORLDS, WAYS):
        worlds = [line for line in lines if (line["kind"], line["way"]) == (kind, way)]
        n, marks = len(worlds), {gender: {*words[: N_MARKS[kind]]} for gender, words in MARKS.items()}
        if not n:
            continue
        named = [{*line["named"]} for line in worlds]
        listed = [{*line["listed"]["female"], *line["listed"]["male"]} for line in worlds]
        yield f"{kind}, {way}: {n} files"
        yield f"  a word named:                {shown(sum(map(bool, named)), n)}"
        yield f"  a department's word named:   {shown(sum(bool(own & words) for words in named), n)}"
        yield f"  a department's word listed:  {shown(sum(bool(own & words) for words in listed), n)}"
        of_one = np.mean([line["n_of_one"] for line in worlds])
        yield f"  lists of one department that are longer than chance: {of_one:.2f} of 8"
        if N_MARKS[kind]:
            right = sum(len(marks[g] & {*line["listed"][g]}) for line in worlds for g in marks)
            yield f"  true marks listed:           {shown(right, 2 * N_MARKS[kind] * n)}"


def main() -> None:
    """Analyse the worlds that are not in the file yet, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--part", type=float, default=1.0, help="of the worlds")
    chosen = parser.parse_args()
    stored = chosen.out.read_text("utf-8").splitlines() if chosen.out.exists() else []
    lines = [json.loads(line) for line in stored]
    if chosen.table:
        print("\n".join(table(lines)))
        return
    done = {(line["kind"], line["seed"], line["way"]) for line in lines}
    with chosen.out.open("a", encoding="utf-8") as file:
        for kind, n_worlds in N_WORLDS.items():
            for seed in range(round(chosen.part * n_worlds)):
                for way in WAYS:
                    if (kind, seed, way) not in done:
                        line = {"kind": kind, "seed": seed, "way": way, **found(kind, seed, way)}
                        print(json.dumps(line), file=file, flush=True)


if __name__ == "__main__":
    main()
