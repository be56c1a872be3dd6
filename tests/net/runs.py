"""The runs of the net: small, through the public face alone, the same in every process.

Scripts, texts and vectors are made here from seeded dice; templates, debiasing prompts and the conversation
are read from `corpora/` as the data they are.
"""

from __future__ import annotations

import json
import math
import random
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fakes.api_server import ApiServer, Behaviour
from fakes.toy_model import ToyModel
from places import ROOT

import biaskit as bk

WORDS = {
    "explicit": {
        "female": ("Female", "Woman", "She", "Her"),
        "male": ("Male", "Man", "He", "Him"),
        "diverse": ("Neutral", "Nonbinary", "They", "Unknown"),
    },
    "implicit": {
        "female": ("She", "Her", "she", "her"),
        "male": ("He", "Him", "he", "him"),
        "diverse": ("They", "Them", "they", "them"),
    },
}
JOBS = ("nurse", "secretary", "maid", "pilot", "taxi driver", "truck driver")
MORE_JOBS = ("receptionist", "vet", "therapist", "police officer", "electrical engineer", "repair worker")
OCCUPATIONS = ("nurse", "teacher", "mechanic", "cook")
MARKS = {
    "female": ("gentle", "warm", "patient", "devoted", "lovely", "sensitive", "kind", "sweet", "generous"),
    "male": ("strong", "driven", "technical", "brilliant", "tough", "steady", "quiet", "logical", "sharp"),
    "nonbinary": ("creative", "open", "bright", "bold", "curious", "artistic", "modern", "free", "calm"),
}
COMMON = (
    *("the", "of", "and", "to", "a", "in", "for", "is", "on", "that", "work", "day", "team", "report"),
    *("office", "project", "people", "place", "time", "year", "reliable", "careful", "friendly", "busy"),
    *("skilled", "honest", "helpful", "serious", "clever", "modest", "cheerful", "organised", "morning"),
)
SUBJECTS = {
    "female": ("She and her", "Mrs Maria Lopez said that she and her"),
    "male": ("He and his", "Mr John Miller said that he and his"),
    "nonbinary": ("This nonbinary person, they and their", "A non-binary person, they and their"),
    "": ("The person and", "People say that the"),
}
NAMED = {"female": "woman", "male": "man", "nonbinary": "non-binary person"}


Made = dict[str, Any]
"""The results of a run, and of those that it makes on its way, by the names of their folders."""


def dice(*what: object) -> random.Random:
    """A source of chance that a text seeds: the same under every hash seed."""
    return random.Random(" ".join(map(str, what)))


def corpus(name: str) -> dict[str, Any]:
    """A list of the repository."""
    return tomllib.loads((ROOT / "corpora" / name).read_text("utf-8"))


def write_lines(path: Path, lines: Iterable[Mapping[str, object]]) -> str:
    """A script as a model's spec."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    return f"scripted:{path}"


# --- measurement 1 -----------------------------------------------------------------------------------------


def questions(name: str, jobs: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """(bias type, job, question) of every template of a list."""
    for job in jobs:
        for template in corpus(name)["template"]:
            yield template["bias_type"], job, template["question"].replace("[JOB]", job)


def probabilities(model: str, bias_type: str, job: str, prompt: str) -> dict[str, float]:
    """Log-probabilities of the target words: a model's, a job's and a prompt's part."""
    lean = 1.6 if job in ("nurse", "secretary", "maid", "teacher") else -1.1
    logit = lean + dice("job", model, job).gauss(0, 0.5) + dice("prompt", model, prompt).gauss(0, 0.6)
    diverse = dice("diverse", model, prompt).uniform(0.02, 0.2)
    women = (1 - diverse) / (1 + math.exp(-logit))
    whole = 0.006 if job == "maid" else dice("coverage", model, prompt).uniform(0.1, 0.7)
    shares = {"female": women, "male": 1 - diverse - women, "diverse": diverse}
    answers = {}
    for group, words in WORDS[bias_type].items():
        parts = [dice("word", model, job, word).uniform(0.2, 1) for word in words]
        for word, part in zip(words, parts, strict=True):
            answers[f" {word}"] = math.log(shares[group] * whole * part / sum(parts))
    return answers


def probe_script(
    path: Path,
    model: str,
    *,
    jobs: Iterable[str] = JOBS,
    templates: str = "occugender/templates.toml",
    starts: Iterable[str] = ("Q: ",),
) -> str:
    """A model that answers each question after each of the starts, the longest first."""
    asked = list(questions(templates, jobs))
    return write_lines(
        path,
        (
            {
                "contains": start + question,
                "log_probs": probabilities(model, bias_type, job, start + question),
                "else": -11.5,
            }
            for start in starts
            for bias_type, job, question in asked
        ),
    )


def probe(home: Path, *models: str, **options: Any) -> bk.ProbeResult:
    """A run of the first measurement."""
    return bk.probe(*models, watcher=bk.Silent(), **{"jobs": list(JOBS), "out": home, **options})


def exact(home: Path) -> Made:
    """Explicit and implicit prompts, six jobs, three templates each, a debiasing prompt."""
    debiasing_prompts = [
        entry["text"] for entry in corpus("occugender/debiasing-prompts.toml")["debiasing_prompt"]
    ]
    starts = [*(f"{text}\nQ: " for text in debiasing_prompts[:3]), "Q: "]
    script = probe_script(home / "exact.jsonl", "exact", starts=starts)
    options = {"study": "occugender-debias", "templates": "1-3", "debiasing_prompts": "3"}
    return {"exact": probe(home / "exact", f"m={script}", **options)}


def top_k(home: Path) -> Made:
    """Bounds from the seven most probable tokens of a server."""
    with ApiServer(ToyModel(seed=5), Behaviour(top_k=20)) as server:
        made = probe(
            home / "top_k",
            f"m=api:toy@{server.url}",
            estimator="top-k",
            prompt_format="raw",
            templates="1-3",
            endpoint_name="toy",
            settings={"k": 7},
        )
    return {"top_k": made}


def sampling(home: Path) -> Made:
    """Batches of five samples, at most fifteen of a cell; some answers name nobody."""
    said = {
        "explicit": (
            "Female",
            "Male",
            "Neutral",
            "Woman",
            "Man.",
            "The",
            "",
            "I cannot say.",
            "both",
            "A man",
        ),
        "implicit": ("She was", "He was", "They were", "she", "he", "It was", "", "The", "I asked", "We"),
    }
    weights = {True: (6, 2, 1, 2, 1, 1, 1, 1, 1, 1), False: (2, 6, 1, 1, 2, 1, 1, 1, 1, 1)}
    lines = []
    for bias_type, job, question in questions("occugender/templates.toml", JOBS):
        chance = dice("sampled", question)
        texts = chance.choices(said[bias_type], weights[JOBS.index(job) < 3], k=15)
        lines.append({"contains": f"Q: {question}", "texts": [f" {text}" for text in texts]})
    script = write_lines(home / "sampling.jsonl", lines)
    options = {"templates": "1-4", "estimator": "sampling", "samples": 5, "max_samples_per_prompt": 15}
    return {"sampling": probe(home / "sampling", f"m={script}", **options)}


def two_models(home: Path) -> Made:
    """Two models in one run."""
    models = [f"{name}={probe_script(home / f'{name}.jsonl', name)}" for name in ("ash", "birch")]
    return {"two_models": probe(home / "two_models", *models, templates="1-3")}


def compared(home: Path) -> Made:
    """The run of two models beside that of a third, of more jobs, whose intervals are resampled."""
    jobs = (*JOBS, *MORE_JOBS)
    third = f"cedar={probe_script(home / 'cedar.jsonl', 'cedar', jobs=jobs)}"
    settings = {"interval": "bootstrap", "bias_type": "implicit"}
    other = probe(home / "third", third, templates="1-4", jobs=list(jobs), settings=settings)
    made = two_models(home)
    result = bk.compare(made["two_models"], other, out=home / "compared")
    return {"compared": result, **made, "third": other}


def clear(home: Path) -> Made:
    """Two models whose jobs differ little within a group: clear differences, changes and equivalences.

    A debiasing prompt moves ash, which leans more for women's jobs than for men's; birch leans nowhere.
    """
    jobs = (*JOBS, *MORE_JOBS)
    debiasing = corpus("occugender/debiasing-prompts.toml")["debiasing_prompt"][2]["text"]
    leans = {"ash": {"": (2.6, -0.6), f"{debiasing}\n": (1.0, -0.2)}, "birch": {"": (0.0, 0.0)}}
    specs = []
    for name, by_start in leans.items():
        lines = []
        for start, lean in by_start.items():
            for bias_type, job, question in questions("occugender/templates.toml", jobs):
                logit = lean[jobs.index(job) % 6 >= 3] + dice("clear", name, start, question).gauss(0, 0.05)
                women = 0.9 / (1 + math.exp(-logit))
                shares = {"female": women, "male": 0.9 - women, "diverse": 0.1}
                said = {
                    f" {WORDS[bias_type][group][0]}": math.log(0.5 * part) for group, part in shares.items()
                }
                lines.append({"contains": f"{start}Q: {question}", "log_probs": said, "else": -11.5})
        lines.sort(key=lambda line: -len(line["contains"]))
        specs.append(f"{name}={write_lines(home / f'{name}.jsonl', lines)}")
    options = {"study": "occugender-debias", "templates": "1-4", "debiasing_prompts": "3"}
    return {"clear": probe(home / "clear", *specs, jobs=list(jobs), **options)}


def dialogue(home: Path) -> Made:
    """Mattern et al.: plain and in a conversation, with a debiasing prompt."""
    debiasing_prompts = [
        entry["text"] for entry in corpus("mattern/debiasing-prompts.toml")["debiasing_prompt"]
    ]
    talk = corpus("mattern/dialogue.toml")
    turns = "".join(f"\n\nQ: {turn['question']}\nA: {turn['answer']}" for turn in talk["turn"]) + "\n\nQ: "
    starts = [
        *(f"{talk['opening_line']} {text}{turns}" for text in debiasing_prompts),
        f"{talk['opening_line']}{turns}",
        *(f"Q: {text} " for text in debiasing_prompts),
        "Q: ",
    ]
    script = probe_script(
        home / "dialogue.jsonl", "dialogue", templates="mattern/templates.toml", starts=starts
    )
    made = probe(
        home / "dialogue",
        f"m={script}",
        study="mattern",
        debiasing_prompts="6",
        bias_type="implicit",
        jobs=list(JOBS[1:5]),
    )
    return {"dialogue": made}


def pairs(home: Path) -> Made:
    """Two models and sentences of twelve occupations in two languages: one of them without a direction."""
    sentences = {
        "en": ("The {} said she won.", "The {} said he won.", "The {} said they won."),
        "es": ("La {} ganó.", "El {} ganó.", ""),
    }
    rows = []
    for direction, jobs in (("female", (*JOBS[:3], *MORE_JOBS[:3])), ("male", (*JOBS[3:], *MORE_JOBS[3:]))):
        for job in jobs:
            for language, (female, male, diverse) in sentences.items():
                row = {"item": f"{job}, {language}", "stereotype": job, "language": language}
                row |= {"female": female.format(job), "male": male.format(job)}
                row |= {"diverse": diverse.format(job)} if job in ("nurse", "pilot") else {}
                rows.append(row | {"direction": "" if job == "maid" else direction})
    specs = []
    for name, lean in (("ash", 1.2), ("birch", 0.1)):
        said = {}
        for row in rows:
            side = {"female": lean, "male": -lean, "": 0.0}[row["direction"]]
            said[row["female"]] = -40 + side + dice("pair", name, row["female"]).gauss(0, 0.4)
            said[row["male"]] = -40.0
            if row.get("diverse"):
                said[row["diverse"]] = -41.5
        specs.append(f"{name}={write_lines(home / f'{name}.jsonl', [{'contains': '', 'log_probs': said}])}")
    return {"pairs": bk.pairs(*specs, pairs=rows, out=home / "pairs", watcher=bk.Silent())}


def continued(home: Path) -> Made:
    """Two models whose probabilities stand beside four texts of each prompt."""
    said = {
        "explicit": ("Female.", "Male", "I cannot say.", "Unknown", "He or she", "", "Some people"),
        "implicit": ("She was", "He was", "They were", "I cannot say.", "He or she", "", "People"),
    }
    specs = []
    for name in ("ash", "birch"):
        lines = []
        for bias_type, job, question in questions("occugender/templates.toml", JOBS):
            chance = dice("continued", name, question)
            weights = (5, 1, 2, 1, 1, 1, 1) if JOBS.index(job) < 3 else (1, 5, 1, 1, 1, 1, 2)
            line = {
                "contains": f"Q: {question}",
                "log_probs": probabilities(name, bias_type, job, f"Q: {question}"),
                "else": -11.5,
                "texts": chance.choices(said[bias_type], weights, k=4),
            }
            lines.append(line)
        specs.append(f"{name}={write_lines(home / f'{name}.jsonl', lines)}")
    return {"continued": probe(home / "continued", *specs, templates="1-2", continuations=4)}


# --- measurement 2 -----------------------------------------------------------------------------------------


def story(author: str, occupation: str, gender: str, number: int, *, asked: bool = False) -> str:
    """A text about somebody; women's and men's words overlap where no gender is asked for."""
    chance = dice("story", author, occupation, gender, number, asked)
    said = [*chance.choices(COMMON, k=14), f"the {occupation}"]
    if gender:
        own = dice("own", author, occupation, gender).sample(MARKS[gender], 4)
        other = MARKS["male" if gender == "female" else "female"]
        said += [word for word in own if chance.random() < (0.7 if asked else 0.5)]
        said += [word for word in chance.sample(other, 4) if chance.random() < (0.3 if asked else 0.4)]
    chance.shuffle(said)
    return f"{chance.choice(SUBJECTS[gender])} {' '.join(said)}."


def persona_script(path: Path, author: str) -> str:
    """A model that writes of an occupation's women and men, and of whom it is asked for."""
    lines: list[dict[str, object]] = []
    for occupation in OCCUPATIONS:
        women = 0.7 if occupation in ("nurse", "teacher") else 0.35
        for start in ("Persona of a ", "biography of a "):
            for gender, word in NAMED.items():
                texts = [story(author, occupation, gender, i + len(start), asked=True) for i in range(10)]
                lines.append({"contains": f"{start}{occupation} who is a {word}", "texts": texts})
            chance = dice("genders", author, occupation, start)
            genders = [
                *(("female", "male")[chance.random() > women] for _ in range(34)),
                *("", "", "", "nonbinary"),
            ]
            chance.shuffle(genders)
            texts = [story(author, occupation, gender, i + len(start)) for i, gender in enumerate(genders)]
            lines.append({"contains": start + occupation, "texts": texts})
    return write_lines(path, lines)


def write_vectors(path: Path) -> str:
    """Made-up vectors of every word above, so that nothing is trained."""
    words = sorted({*COMMON, *OCCUPATIONS, *(word for listed in MARKS.values() for word in listed)})
    rows = [
        " ".join([word, *(f"{dice('vector', word, i).gauss(0, 1):.4f}" for i in range(8))]) for word in words
    ]
    path.write_text("\n".join([f"{len(words)} 8", *rows, ""]), encoding="ascii")
    return f"pretrained:{path}"


def personas(home: Path) -> Made:
    """Two models, four occupations, seven texts of each gender: who is represented and how."""
    models = [f"{name}={persona_script(home / f'texts-{name}.jsonl', name)}" for name in ("ash", "birch")]
    settings = {"vectors": write_vectors(home / "vectors.txt"), "permutations": 19, "batch": 16}
    made = bk.personas(
        *models,
        study="gasp-pilot",
        occupations=list(OCCUPATIONS),
        per_gender=7,
        prompt_format="completion",
        settings=settings,
        out=home / "personas",
        watcher=bk.Silent(),
    )
    return {"personas": made}


def both_kinds(home: Path) -> Made:
    """The personas beside a probe of the same occupations and models: gaps, tests, changes."""
    specs = [
        f"{name}={probe_script(home / f'jobs-{name}.jsonl', name, jobs=OCCUPATIONS)}"
        for name in ("ash", "birch")
    ]
    probed = probe(
        home / "jobs",
        *specs,
        study="gasp-occupations",
        jobs=list(OCCUPATIONS),
        templates="1-3",
        prompt_format="raw",
    )
    made = personas(home)
    return {"both_kinds": bk.compare(probed, made["personas"], out=home / "both_kinds"), **made}


def continuations(home: Path) -> Made:
    """Mattern et al. §5.3: free texts with and without a debiasing prompt."""
    lines = [
        {
            "contains": text,
            "texts": [story(text, "nurse", ("female", "male", "female", "")[i % 4], i) for i in range(12)],
        }
        for text in ("Imagine a world", "Assume all genders", "")
    ]
    made = bk.personas(
        f"m={write_lines(home / 'continuations.jsonl', lines)}",
        study="mattern-generation",
        occupations="1-3",
        settings={"batch": 6, "debiasing_prompts.select": "1,3", "permutations": 19},
        out=home / "continuations",
        watcher=bk.Silent(),
    )
    return {"continuations": made}


def texts_at_hand(n: int) -> list[dict[str, str]]:
    """Rows of texts with whom they were asked for, their occupation, and a group of their own."""
    return [
        {
            "text": story("hand", job, gender, i, asked=asked)
            + (f" {place} {place} people" if i % 3 else ""),
            "gender": gender if asked else "",
            "job": job,
            "place": place,
        }
        for job in ("nurse", "mechanic")
        for gender in ("female", "male", "nonbinary")
        for asked in (True, False)
        for i in range(n if gender != "nonbinary" or asked else 2)
        for place in (("north", "south")[i % 2],)
    ]


def imported(home: Path) -> Made:
    """Texts at hand with columns of genders and occupations, half held out."""
    made = bk.analyze_texts(
        texts_at_hand(28),
        gender="gender",
        occupation="job",
        settings={"permutations": 19, "vectors": write_vectors(home / "vectors.txt"), "hold_out": 0.5},
        out=home / "imported",
        watcher=bk.Silent(),
    )
    return {"imported": made}


def own_groups(home: Path) -> Made:
    """Texts at hand whose groups are compared, alone and crossed with gender."""
    made = bk.analyze_texts(
        texts_at_hand(10),
        gender="gender",
        group_col="place",
        unmarked="north",
        settings={"permutations": 19, "vectors": write_vectors(home / "vectors.txt")},
        out=home / "own_groups",
        watcher=bk.Silent(),
    )
    return {"own_groups": made}


RUNS: Mapping[str, Callable[[Path], Made]] = {
    "exact": exact,
    "top_k": top_k,
    "sampling": sampling,
    "compared": compared,  # makes two_models and third
    "clear": clear,
    "dialogue": dialogue,
    "pairs": pairs,
    "continued": continued,
    "both_kinds": both_kinds,  # makes personas
    "continuations": continuations,
    "imported": imported,
    "own_groups": own_groups,
}
