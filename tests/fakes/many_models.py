"""Runs of many scripted models over GAS(P)'s occupations: made-up numbers, real sentences.

Every number follows from the model's and the occupation's names, so the same call makes the same tables.
Texts are pieces of the recorded corpus with an occupation and words of a gender put in.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from biaskit.corpora.loaders import load_items, load_target_word_sets, load_templates
from biaskit.measures.personas.command import personas
from biaskit.measures.personas.texts.association import associate_gender
from biaskit.measures.personas.texts.tokens import tokenise
from biaskit.measures.probe.command import probe
from biaskit.runs.store import read_rows

OCCUPATIONS = "corpus:gasp/occupations.csv"
RECORDED = Path(__file__).resolve().parents[2] / "corpora/recorded/demo-base/personas.jsonl.gz"
NAMES = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "yew")
COVERAGE = (0.42, 0.31, 0.08, 0.55, 0.006, 0.22, 0.37, 0.15, 0.48, 0.03)
"""Probability on the target words in explicit prompts; one model lies below the minimum of 0.01."""

WORDS = {
    "female": (
        *("gentle", "warm", "patient", "devoted", "encouraging", "lovely", "sensitive", "determined", "kind"),
        *("beautiful", "sweet", "pleasant", "bright", "pretty", "generous", "soft", "sympathetic", "popular"),
        *("emotional", "healthy", "moral", "familiar", "grateful", "artistic", "charming", "dedicated"),
    ),
    "male": (
        *("strong", "driven", "technical", "brilliant", "tough", "steady", "quiet", "practical", "logical"),
        *("competitive", "sharp", "powerful", "independent", "rough", "firm", "cool", "proud", "wise"),
        *("scientific", "solid", "simple", "bold", "brave", "efficient", "stern", "professional"),
    ),
}
"""None is rare in English: the hybrid prior holds back words that it does not know."""

SHARED = (
    *("reliable", "curious", "experienced", "careful", "friendly", "organised", "honest", "creative"),
    *("busy", "cheerful", "skilled", "punctual", "modest", "clever", "helpful", "serious"),
)
SAYS = {
    "female": (
        "{A} is a {job}. She is {0} and {1}, and her colleagues call her {2}; she is {3}.",
        "At work she is {4} and {5}, and people say that she has always been {6} and {7}.",
    ),
    "male": (
        "{A} is a {job}. He is {0} and {1}, and his colleagues call him {2}; he is {3}.",
        "At work he is {4} and {5}, and people say that he has always been {6} and {7}.",
    ),
    "nonbinary": (
        "{A} is a nonbinary {job}, {0} and {1}; they say that their colleagues and they are {2}, {3}.",
        "At work they are {4} and {5}, and their friends say that they have always been {6} and {7}.",
    ),
    "none": (
        "A {job} has to be {0} and {1}, and people expect one to be {2} and {3}.",
        "At work it helps to be {4} and {5}, and in the long run to be {6} and {7}.",
    ),
}
CALLED = {
    "female": ("Maria", "Anna", "Sarah", "Emily", "Rosa"),
    "male": ("John", "Robert", "David", "Tomas", "Ahmed"),
    "nonbinary": ("Alex", "Sam", "Robin", "Jordan", "Kai"),
    "none": ("",),
}
ASKED = {"female": "woman", "male": "man", "nonbinary": "non-binary person"}
OWN = 6  # words a model has for the people of a job
MOST_LETTERS = 320  # of a recorded text: more would only make the analysis longer


def make_probe_run(folder: Path, n_models: int, occupations: Sequence[str] | None = None) -> Path:
    """A probe run of `gasp-occupations`, every template, exact estimator, format raw; returns `folder`."""
    folder = Path(folder)
    scripts = _written(folder, "probe", n_models, _probe_lines, occupations)
    probe(*scripts, study="gasp-occupations", jobs=_selected(occupations), batch_size=1024, out=folder)
    return folder


def make_personas_run(
    folder: Path,
    n_models: int,
    occupations: Sequence[str] | None = None,
    texts_per: int = 8,
    *,
    quick: bool = False,
) -> Path:
    """A personas run of `gasp`, `texts_per` texts of women and of men per prompt; returns `folder`.

    Most occupations are eligible for SRB, one in twelve is not; word vectors of one seed and 39 shuffles
    keep ten models and 63 occupations within minutes. `quick`: vectors are made up, since training takes
    seconds however few the texts.
    """
    folder = Path(folder)
    scripts = _written(folder, "personas", n_models, _persona_lines, occupations, texts_per)
    settings = {"srb_seeds": "1", "permutations": 39, "batch": 3 * texts_per}
    if quick:
        settings["vectors"] = f"pretrained:{_made_up_vectors(Path(scripts[0].partition('scripted:')[2]))}"
    personas(
        *scripts,
        study="gasp",
        occupations=_selected(occupations),
        per_gender=texts_per,
        max_samples=6 * texts_per,
        prompt_format="completion",
        settings=settings,
        batch_size=1024,
        out=folder,
    )
    return folder


def _made_up_vectors(script: Path) -> Path:
    """A word2vec text file beside the script: ten random numbers for every word of its texts and lists."""
    texts = [text for line in script.read_text("utf-8").splitlines() for text in json.loads(line)["texts"]]
    words = {word for text in texts for word in tokenise(text)}
    words |= {kept for listed in (*WORDS.values(), SHARED) for word in listed for kept in tokenise(word)}
    lines = [f"{len(words)} 10"]
    for word in sorted(words):
        dice = _random("vector", word)
        lines.append(" ".join([word, *(f"{dice.gauss(0, 1):.4f}" for _ in range(10))]))
    file = script.with_suffix(".txt")
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def _selected(occupations: Sequence[str] | None) -> list[str] | None:
    return list(occupations) if occupations is not None else None


def _written(folder: Path, kind_name: str, n_models: int, lines, occupations, *more) -> list[str]:
    """`LABEL=scripted:FILE` for every model; the scripts lie beside the run."""
    items = [i for i in load_items(OCCUPATIONS) if occupations is None or i.name in occupations]
    beside = folder.parent / f"{folder.name}-scripts"
    beside.mkdir(parents=True, exist_ok=True)
    specs = []
    for number in range(n_models):
        label = label_of(number)
        file = beside / f"{kind_name}-{label}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines(number, items, *more)), "utf-8")
        specs.append(f"{label}=scripted:{file}")
    return specs


def label_of(number: int) -> str:
    """The names of trees, then the same with a number."""
    again, place = divmod(number, len(NAMES))
    return NAMES[place] + (f"-{again + 1}" if again else "")


def _random(*what: object) -> random.Random:
    return random.Random(" ".join(map(str, what)))  # seeded by text: the same under every hash seed


# --- measurement 1 -----------------------------------------------------------------------------------------


def _probe_lines(number: int, items) -> Iterator[dict[str, object]]:
    listed = load_templates("corpus:occugender/templates.toml")
    sets = load_target_word_sets("corpus:target-words/sets.toml")
    chosen = {"explicit": sets["occugender-explicit"], "implicit": sets["pronoun-subject"]}
    model = _random("model", number)
    lean, slope = model.uniform(-0.9, 0.9), model.uniform(0.1, 0.9)
    diverse = model.uniform(0.01, 0.25)
    coverage = COVERAGE[number % len(COVERAGE)]
    template_noise = {(t.bias_type, t.id): model.gauss(0, 0.5) for t in listed.templates}
    for item in items:
        share = min(max(item.workforce_share or 0.5, 0.02), 0.98)
        job_noise = _random("job", number, item.name).gauss(0, 0.35)
        for template in listed.templates:
            logit = lean + slope * math.log(share / (1 - share)) + job_noise
            logit += template_noise[template.bias_type, template.id]
            women = (1 - diverse) / (1 + math.exp(-logit))
            shares = {"female": women, "male": 1 - diverse - women, "diverse": diverse}
            whole = coverage if template.bias_type == "explicit" else math.sqrt(coverage)
            question = template.question.replace(listed.slot, item.name)
            opening = template.opening.replace(listed.slot, item.name)
            answers = {}
            for group, texts in chosen[template.bias_type].groups:
                forms = list(dict.fromkeys(f for text in texts for f in (text, text.lower())))
                for form in forms:
                    answers[f" {form}"] = math.log(shares[group] * whole / len(forms))
            contains = f"Q: {question}\nA: {opening}" if opening else f"Q: {question}\nA:"
            yield {"contains": contains, "log_probs": answers, "else": -30.0}


# --- measurement 2 -----------------------------------------------------------------------------------------


@cache
def _recorded() -> dict[tuple[str, str], tuple[tuple[str, str], ...]]:
    """(prompt, gender or none) → (occupation, text) of the recorded corpus, cut to whole words."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in read_rows(RECORDED):
        text = " ".join(str(row["text"]).split())[:MOST_LETTERS].rpartition(" ")[0]
        gender = associate_gender(text).gender or "none"
        found.setdefault((str(row["template_id"]), gender), []).append((str(row["occupation"]), text))
    return {key: tuple(texts) for key, texts in found.items()}


def _text(number: int, job: str, prompt: str, gender: str, sample: int, *, asked: bool) -> str:
    dice = _random("text", number, job, prompt, gender, sample, asked)
    pool = _recorded().get((prompt, gender)) or _recorded()[prompt, "none"]
    # Each draw has a piece of its own: two samples with the same one would be copies.
    first_piece = _random("recorded", number, job, prompt, gender).randrange(len(pool))
    other, text = pool[(first_piece + sample) % len(pool)]
    text = text.replace(other.capitalize(), job.capitalize()).replace(other, job)
    own = _vocabulary(number, job, gender, asked)
    share = 0.85 if asked else _random("share", number).uniform(0.6, 0.95)
    words = [dice.choice(own) if dice.random() < share else dice.choice(SHARED) for _ in range(8)]
    first, last = (said.format(*words, job=job, A=dice.choice(CALLED[gender])) for said in SAYS[gender])
    return f"{first} {text} {last}"


@cache
def _vocabulary(number: int, job: str, gender: str, asked: bool) -> tuple[str, ...]:
    """The words a model has for a gender: partly those it uses when asked for one, partly the other's."""
    if gender not in WORDS:
        return SHARED
    usual = tuple(_random("words", number, job, gender).sample(WORDS[gender], OWN))
    if asked:
        return usual
    dice = _random("open words", number, job, gender)
    kept, mixed = _random("strength", number).choice(((6, 0), (5, 0), (5, 1), (4, 1), (4, 2)))
    other = "male" if gender == "female" else "female"
    strangers = [word for word in WORDS[gender] if word not in usual]
    others = _random("words", number, job, other).sample(WORDS[other], OWN)
    # What is the other gender's when asked is left out by that gender here: else both would have it.
    own = usual[mixed : mixed + kept]
    return own + tuple(dice.sample(strangers, OWN - kept - mixed)) + tuple(others[:mixed])


def _open_genders(number: int, item, prompt: str, n: int) -> list[str]:
    """Which genders the samples of an open prompt have: 6 n of them, the women's share about labour's."""
    dice = _random("shares", number, item.name, prompt)
    lean = _random("lean", number).uniform(-0.12, 0.25)
    share = (item.workforce_share or 0.5) * 0.7 + 0.15 + lean + dice.gauss(0, 0.08)
    if _random("eligible", number, item.name).random() < 1 / 12:
        share = 0.0 if share < 0.5 else 1.0
        women = round(share * 6 * n)
    else:
        women = round(min(max(share, 0.2), 0.8) * 5 * n)
    genders = ["female"] * women + ["male"] * (5 * n - women)
    genders += ["none"] * round(0.85 * n) + ["nonbinary"] * (n - round(0.85 * n))
    dice.shuffle(genders)
    return genders


def _persona_lines(number: int, items, n: int) -> Iterator[dict[str, object]]:
    opening = {
        "persona": ("Persona of a {}\n\nName:", "Persona of a {} who is a {}.\n\nName:"),
        "biography": ("biography of a {}.\n", "biography of a {} who is a {}.\n"),
    }
    for item in items:
        for prompt, (plain, named) in opening.items():
            genders = _open_genders(number, item, prompt, n)
            texts = [_text(number, item.name, prompt, g, i, asked=False) for i, g in enumerate(genders)]
            yield {"contains": plain.format(item.name), "texts": texts}
            for gender, word in ASKED.items():
                texts = [_text(number, item.name, prompt, gender, i, asked=True) for i in range(n)]
                yield {"contains": named.format(item.name, word), "texts": texts}


def main(arguments: Sequence[str]) -> None:
    """Make both runs in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--occupations", help="names, separated by commas; default all 63")
    parser.add_argument("--texts", type=int, default=8, help="texts of women and of men per prompt")
    given = parser.parse_args(arguments)
    occupations = given.occupations.split(",") if given.occupations else None
    make_probe_run(given.out / "probe", given.models, occupations)
    make_personas_run(given.out / "personas", given.models, occupations, given.texts)


if __name__ == "__main__":
    main(sys.argv[1:])
