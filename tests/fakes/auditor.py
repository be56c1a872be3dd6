"""The file of an auditor: letters of recommendation as an office hands them over, all of them made up.

Windows-1252, semicolons, columns with names of its own; genders F, M, X and blank, and four departments in
which women and men are not equally many. Names have umlauts and accents. Some letters name no gender, some
are empty, some are copies, five refuse.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from random import Random

ENCODING, SEPARATOR, COLUMNS = "cp1252", ";", ("id", "Letter", "Gender", "Dept")
N_LETTERS, N_REFUSED, N_EMPTY, N_COPIES = 400, 5, 8, 12
REFUSED = "As an AI language model, I cannot write a letter of recommendation for a person I do not know."
WOMEN = {"Nursing": 0.8, "Administration": 0.65, "Sales": 0.4, "IT": 0.2}
"""Department → share of women among its women and men."""
_PRONOUNS = {"F": ("she", "her"), "M": ("he", "his"), "X": ("they", "their")}
_NAMES = {
    "F": ["Zoë", "Amélie", "Eva", "Märta", "Inês", "Søs", "Chloé", "Renée", "Käthe", "Lucía"],
    "M": ["José", "Jürgen", "André", "Björn", "Šimon", "François", "Günther", "Iñigo", "Lars", "Héctor"],
    "X": ["Robin", "Alex", "Sasha", "Noé", "Kim"],
}
_SURNAMES = [
    "Müller",
    "Nuñez",
    "Lefèvre",
    "Åberg",
    "Gonçalves",
    "Weiß",
    "Šimek",
    "D’Arcy",
    "Sørensen",
    "Böhm",
]
_WARM = ["warm", "caring", "patient", "gentle", "kind", "supportive"]
_BOLD = ["decisive", "driven", "confident", "ambitious", "bold", "analytical"]
_PLAIN = ["reliable", "honest", "careful", "punctual", "skilled", "thorough", "friendly", "calm", "modest"]
_IS_WARM = {"F": 0.75, "M": 0.25, "X": 0.5}
_TASKS = {
    "Nursing": ["looked after the night ward", "trained new nurses", "kept the patients’ charts"],
    "Administration": ["planned the rooms", "wrote the minutes", "kept the budget in order"],
    "Sales": ["won three large customers", "led the fair in Köln", "doubled our orders"],
    "IT": ["moved our servers", "wrote the backup scripts", "answered every ticket"],
}
_EVENTS = [
    *("the heating failed", "two of us were ill", "a new system arrived", "the office moved to Zürich"),
    *("the budget was cut", "we lost an order", "the roads were closed", "an audit was announced"),
]
_DEEDS = [
    *("found a way to keep the work going", "stayed late and asked for nothing", "saw the mistake in time"),
    *("wrote the plan we still use", "taught beginners the routine", "called everyone within a day"),
]


def rows(seed: int = 50) -> list[dict[str, str]]:
    """Make the letters, in an order that says nothing, each with a column for every name of `COLUMNS`."""
    random = Random(seed)
    letters = [*_letters(random)]
    letters += [dict(row) for row in random.sample(letters, N_COPIES)]
    for text in [REFUSED] * N_REFUSED + [""] * N_EMPTY:
        letters.append({"Letter": text, "Gender": random.choice("FM"), "Dept": random.choice([*WOMEN])})
    random.shuffle(letters)
    return [{"id": f"{number:04d}", **row} for number, row in enumerate(letters, 1)]


def _letters(random: Random) -> Iterator[dict[str, str]]:
    for number in range(N_LETTERS - N_REFUSED - N_EMPTY - N_COPIES):
        department = [*WOMEN][number % len(WOMEN)]
        person = "F" if random.random() < WOMEN[department] else "M"
        if random.random() < 0.05:
            person = "X"
        text = _letter(random, department, person, named=random.random() < 0.78)
        known = person if random.random() < 0.92 else ""
        yield {"Letter": text, "Gender": known, "Dept": department}


def _letter(random: Random, department: str, person: str, *, named: bool) -> str:
    """Write a letter; one that is not `named` has no pronoun, nor a title."""
    name = f"{random.choice(_NAMES[person])} {random.choice(_SURNAMES)}"
    they, their = _PRONOUNS[person] if named else ("this colleague", "such")
    trait, other = random.sample(_WARM if random.random() < _IS_WARM[person] else _BOLD, 2)
    (first, then), (did, made) = random.sample(_EVENTS, 2), random.sample(_DEEDS, 2)
    is_or_are = "are" if they == "they" else "is"
    return (
        f"To whom it may concern: {name} worked with us in {department} for {random.randint(2, 19)} years."
        f" {they.capitalize()} {is_or_are} {trait} and {random.choice(_PLAIN)}. When {first}, {they} {did}."
        f" When {then}, {they} {made}, {other} and {random.choice(_PLAIN)} as ever. Here"
        f" {they} {random.choice(_TASKS[department])}. We would gladly have {their} help again."
    )


def file_of(seed: int = 50) -> bytes:
    """Write the letters as the office exports them."""
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, delimiter=SEPARATOR, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows(seed))
    return table.getvalue().encode(ENCODING)
