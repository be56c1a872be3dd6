"""Which words a page names of a file whose departments have mostly women's, or mostly men's, letters.

    python benchmarks/word_worlds.py --out words.jsonl            # goes on where it stopped
    python benchmarks/word_worlds.py --out words.jsonl --table    # the table of what is there

A world is a file of 400 letters of four departments, two of them with 80 % women's letters, two with 80 %
men's. Every department has six words of its own, in 75 % of its letters. In a `null` world nothing else
differs; in a `marks` world seven more words are in 75 % of women's letters and 25 % of men's, and seven the
other way round, in a `few` world two and two. `within`: words of the lists of women and men, with departments
named, that are longer than chance when judged together, without gendered words. Of the first worlds of each
kind: `page`, what the sentences of the file's page name; `pooled`, the lists without departments; `area`,
whether the interval over texts of the AUC holds the truth: 0.5 in null worlds, else the mean over worlds.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import biaskit as bk
from biaskit.common.plain import group_by
from biaskit.corpora.loaders import english_counts
from biaskit.measures.personas.findings.words import surely_longer
from biaskit.measures.personas.texts.association import associate_gender
from biaskit.measures.personas.texts.names import says_gender
from biaskit.measures.personas.texts.tokens import TokenisedTexts
from biaskit.measures.personas.words.contrasts import WordList
from biaskit.measures.personas.words.lists import word_lists
from biaskit.measures.personas.words.log_odds import counts_in
from biaskit.report.findings import findings
from biaskit.stats.classification import Sample, at_one_size
from biaskit.stats.crossed import MANY, share_interval
from biaskit.stats.proportions import wilson
from biaskit.tables.query import defined
from biaskit.workflow.report import _content

N_WORLDS, N_FIRST = {"null": 400, "marks": 200, "few": 200}, 50
N_LETTERS, SHARES = 400, {"nursing": 0.8, "engineering": 0.2, "sales": 0.8, "law": 0.2}  # of women's letters
OFTEN, SELDOM = 0.75, 0.25
WAYS = ("within", "page", "area", "pooled")
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
ENGLISH = english_counts("table")


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
    """Find the words that one world's lists, or its page, name; and how many single departments' lists."""
    texts = list(world(kind, seed))
    if way == "page":
        return {"words": on_page(texts)}
    tokens = TokenisedTexts.build(list(map(itemgetter("text"), texts)), "papers")
    departments = list(map(itemgetter("Dept"), texts))
    genders = [str(associate_gender(row["text"]).gender) for row in texts]
    english, left_out = counts_in(ENGLISH, tokens.words), says_gender(tokens.words, ())
    places_of = group_by(range(len(texts)), departments.__getitem__)
    if way == "area":
        rng, sizes = np.random.default_rng(seed), []
        for places in places_of.values():
            is_female = [genders[i] == "female" for i in places]
            sample = Sample.shuffled(
                tokens.counts[places][:, ~left_out], is_female, [""] * len(places), rng, 0
            )
            sizes.append(at_one_size(sample, sample, rng) or (0.5, 0.0))
        area, variance = np.mean(sizes, axis=0)
        return {"words": [], "area": area, "se": (variance / len(sizes)) ** 0.5}

    def lists(places: list[int], **how: Any) -> list[WordList]:
        of_places = [genders[i] for i in places]
        about = {"words": tokens.words, "english": english, "left_out": left_out, "methods": ("calibrated",)}
        key = (kind, str(seed), way, *how.get("strata", ())[:1])
        made = word_lists(tokens.counts[places], genders=of_places, **about, seed=1, row_key=key, **how)
        rows = [{"list": one, "p_value_beyond": one.p_value_beyond} for one in made]
        return [row["list"] for row in surely_longer(defined(rows, "p_value_beyond"))]

    every = list(range(len(texts)))
    if way == "pooled":
        return {"words": words_of(lists(every, strata=["texts"] * len(texts)), left_out, tokens.words)}
    of_one = []
    for department, places in places_of.items():
        of_one += lists(places, strata=[department] * len(places))
    within = lists(every, strata=departments, occupations=departments)
    return {"words": words_of(within, left_out, tokens.words), "n_of_one": len(of_one)}


def words_of(lists: list[WordList], left_out: np.ndarray, words: Sequence[str]) -> list[str]:
    """List the words of some lists, without gendered ones."""
    gendered = {word for word, out in zip(words, left_out, strict=True) if out}
    return [word for one in lists for word in one.listed if word not in gendered]


def on_page(texts: list[dict[str, str]]) -> list[str]:
    """List the words that the sentences of a file's page name."""
    with tempfile.TemporaryDirectory() as folder:
        run, how = Path(folder) / "run", {"settings": {"clusters": False}, "watcher": bk.Silent()}
        bk.analyze_texts(texts, out=run, occupation="Dept", **how)
        content = _content([run], False, (), None, {}, None, bk.Silent())[0]
        said = [finding.text for finding in findings(content) if finding.topic == "words"]
    return re.findall("“(.*?)”", " ".join(said))


def shown(n: int, of: int) -> str:
    """Write a share with Wilson's interval, in %."""
    low, high = wilson(n, of) or (0.0, 1.0)
    return f"{100 * n / of:5.1f} [{100 * low:4.1f} to {100 * high:4.1f}]"


def table(lines: list[dict[str, Any]]) -> Iterator[str]:
    """Yield some lines for each kind of world and way of counting."""
    own = {word for words in OWN.values() for word in words}
    for kind, way in product(N_WORLDS, WAYS):
        worlds = [line for line in lines if (line["kind"], line["way"]) == (kind, way)]
        n, words = len(worlds), [{*line["words"]} for line in worlds]
        if not n:
            continue
        yield f"{kind}, {way}: {n} files"
        if way == "area":
            areas, se = (np.array([line[name] for line in worlds]) for name in ("area", "se"))
            truth = 0.5 if kind == "null" else areas.mean()
            low, high = share_interval(areas, se**2, np.array(MANY))
            yield f"  AUC {areas.mean():.3f}, held: {shown(int(((low <= truth) & (truth <= high)).sum()), n)}"
            continue
        yield f"  any word:            {shown(sum(map(bool, words)), n)}"
        yield f"  a department's word: {shown(sum(bool(own & of_one) for of_one in words), n)}"
        if way == "within":
            yield f"  lists of a department: {np.mean([line['n_of_one'] for line in worlds]):.2f} of 8"
        if N_MARKS[kind]:
            marks = {word for of_gender in MARKS.values() for word in of_gender[: N_MARKS[kind]]}
            right = sum(len(marks & of_one) for of_one in words)
            yield f"  true marks:          {shown(right, len(marks) * n)}"


def main() -> None:
    """Analyse the worlds that are not in the file yet, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    stored = chosen.out.read_text("utf-8").splitlines() if chosen.out.exists() else []
    lines = [json.loads(line) for line in stored]
    if chosen.table:
        print("\n".join(table(lines)))
        return
    done = {(line["kind"], line["seed"], line["way"]) for line in lines}
    with chosen.out.open("a", encoding="utf-8") as file:
        for way, kind in product(WAYS, N_WORLDS):
            for seed in range(N_WORLDS[kind] if way == WAYS[0] else N_FIRST):
                if (kind, seed, way) not in done:
                    line = {"kind": kind, "seed": seed, "way": way, **found(kind, seed, way)}
                    print(json.dumps(line), file=file, flush=True)


if __name__ == "__main__":
    main()
