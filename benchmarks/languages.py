"""How often the rules of each language are right, on sentences of Wikipedia in two versions (MT-GenEval).

python benchmarks/languages.py [--write] [FOLDER]

FOLDER has CODE.csv with the columns sentence, gender, pronoun, text; by default shared/data/mt-geneval
beside this checkout, which may not be shipped. Sentences about one person are those whose English has she
and he (`pronoun`). Texts are imitated: 3 to 6 such sentences of one sex; with one of the other sex; one or
two with a sentence on the family. `--write` puts the rates of single sentences into language.toml, as
`measured`, and its digest into corpus.toml.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from biaskit.common.files import data_dir
from biaskit.corpora.languages import Language, shipped_languages
from biaskit.measures.personas.texts.association import associate_gender

ROOT = Path(__file__).resolve().parents[1]
SEXES = ("female", "male")
N_TEXTS = 4000
Sentences = dict[str, list[str]]  # sex → texts
FAMILY = {  # of a woman, and of a man
    "de": (
        "Dazu kommen der Ehemann und zwei Söhne.",
        "Dazu kommen die Ehefrau und zwei Töchter.",
    ),
    "en": ("Lives with a husband and two sons.", "Lives with a wife and two daughters."),
    "fr": ("Vit avec son mari et ses deux fils.", "Vit avec sa femme et ses deux filles."),
    "pt": ("Vive com o marido e os dois filhos.", "Vive com a mulher e as duas filhas."),
    "ru": ("Живёт с мужем и двумя сыновьями.", "Живёт с женой и двумя дочерьми."),
}


def sentences(file: Path) -> Sentences:
    """Read the sentences about one person whose two versions differ."""
    with file.open(encoding="utf-8", newline="") as content:
        rows = [row for row in csv.DictReader(content) if row["pronoun"] == "yes"]
    versions: dict[str, set[str]] = {}
    for row in rows:
        versions.setdefault(row["sentence"], set()).add(row["text"])
    found: Sentences = {sex: [] for sex in SEXES}
    for row in rows:
        if len(versions[row["sentence"]]) > 1:
            found[row["gender"]].append(row["text"])
    return found


def tally(read: Callable[[str], str | None], texts: Iterator[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Count (sex, what the rules say) of texts with their sex."""
    return Counter((sex, read(text) or "none") for sex, text in texts)


def rates(counts: Counter[tuple[str, str]]) -> dict[str, float]:
    """Compute, in parts of 1, what is right and wrong of women's and men's texts."""
    found = {}
    for sex, other, who in (("female", "male", "women"), ("male", "female", "men")):
        n = sum(counts[sex, said] for said in (*SEXES, "nonbinary", "none"))
        found[f"{who}_right"], found[f"{who}_wrong"] = counts[sex, sex] / n, counts[sex, other] / n
    decided, right = decided_right(counts)
    return {"decided": decided / 100, "right": right / 100, **found}


def decided_right(counts: Counter[tuple[str, str]]) -> tuple[float, float]:
    """Compute the part that is decided, and the part of this that is right, in percent."""
    right = sum(counts[sex, sex] for sex in SEXES)
    decided = right + counts["female", "male"] + counts["male", "female"]
    return 100 * decided / counts.total(), 100 * right / decided


def imitated(
    pool: Sentences, share: float, kind: str, family: Sequence[str], rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield texts, a part `share` of them about women; `kind`: alone, another, family."""
    for i in range(N_TEXTS):
        sex = SEXES[i >= share * N_TEXTS]
        other = SEXES[sex == "female"]
        n = rng.randint(1, 2) if kind == "family" else rng.randint(3, 6)
        parts = rng.sample(pool[sex], n)
        if kind == "another":
            parts.insert(rng.randint(1, n), rng.choice(pool[other]))
        if kind == "family":
            parts.append(family[SEXES.index(sex)])
        yield sex, " ".join(parts)


def share_found(counts: Counter[tuple[str, str]]) -> float:
    """Compute the share of women among texts that name a gender, in percent."""
    women, men = (counts["female", sex] + counts["male", sex] for sex in SEXES)
    return 100 * women / (women + men)


def lines(language: Language, pool: Sentences) -> Iterator[str]:
    """Yield the lines of the table of one language."""

    def read(text: str) -> str | None:
        return associate_gender(text, language=language).gender

    of_one = tally(read, ((sex, text) for sex in SEXES for text in pool[sex]))
    per = {name: f"{100 * rate:.1f}" for name, rate in rates(of_one).items()}
    decided, right = decided_right(of_one)
    yield f"{language.name}: {of_one.total()} sentences about one person"
    yield f"  decided {decided:.1f}, right {right:.2f}"
    yield "  women {women_right} ({women_wrong}), men {men_right} ({men_wrong})".format(**per)
    for kind in ("alone", "another", "family"):
        rng, found = random.Random(54), []
        family = FAMILY[language.code]
        both = tally(read, imitated(pool, 0.5, kind, family, rng))
        for share in (0.1, 0.5, 0.9):
            found.append(f"{share_found(tally(read, imitated(pool, share, kind, family, rng))):.1f}")
        decided, right = decided_right(both)
        shares = f"10, 50, 90 % women come out as {', '.join(found)}"
        yield f"  {kind}: decided {decided:.1f}, right {right:.1f}; {shares}"


def write(code: str, numbers: dict[str, float], n: int) -> None:
    """Put the rates into language.toml, and its new digest into corpus.toml."""
    folder = data_dir("corpora") / f"language-{code}"
    file = folder / "language.toml"
    measured = ['\n[measured]\ndata = "MT-GenEval, development half"', f"n = {n}"]
    measured += [f"{name} = {rate:.4f}" for name, rate in numbers.items()]
    text = file.read_text("utf-8").partition("\n[measured]")[0].rstrip("\n") + "\n"
    file.write_text(text + "\n".join(measured) + "\n", "utf-8")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    corpus = folder / "corpus.toml"
    corpus.write_text(re.sub(r'sha256 = "\w*"', f'sha256 = "{digest}"', corpus.read_text("utf-8")), "utf-8")


def main() -> None:
    """Print the table, and write what was measured if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT.parent / "shared/data/mt-geneval")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for code, language in shipped_languages().items():
        file = options.folder / f"{code}.csv"
        if not (language.has_rules and file.is_file()):
            continue
        pool = sentences(file)
        print("\n".join(lines(language, pool)), flush=True)
        if options.write:
            of_one = tally(
                lambda text, own=language: associate_gender(text, language=own).gender,
                ((sex, text) for sex in SEXES for text in pool[sex]),
            )
            write(code, rates(of_one), of_one.total())


if __name__ == "__main__":
    main()
