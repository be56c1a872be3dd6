"""Write letters.csv: made-up letters of recommendation, for docs/tutorials/audit-a-csv.md."""

import random

import pandas as pd

random.seed(12)
SHARE_OF_WOMEN = {"nurse": 0.85, "teacher": 0.7, "lawyer": 0.4, "mechanic": 0.15}
WARM, BOLD = ["warm", "caring", "patient", "gentle"], ["decisive", "driven", "confident", "ambitious"]
PLAIN = ["reliable", "honest", "careful", "punctual", "skilled", "thorough", "friendly", "calm"]
TOWNS = ["Leeds", "Porto", "Lyon", "Turin", "Ghent", "Bergen", "Cork", "Graz", "Malaga", "Bremen"]
EVENTS = [
    *("the heating failed in January", "two of us were ill", "a new system arrived", "the office moved"),
    *("an angry visitor came in", "the budget was cut", "we lost our largest order", "the roads were closed"),
]
DEEDS = [
    *("found a way to keep the work going", "stayed late and asked for nothing", "saw the mistake in time"),
    *("wrote the plan we still use", "taught three beginners the routine", "called everyone within a day"),
    *("kept the records in perfect order", "made sure that nobody was left out"),
]


def letter(job, person):
    he, his = {"F": ("she", "her"), "M": ("he", "his"), "X": ("they", "their")}[person]
    if random.random() < 0.2:  # no pronoun in these letters
        he, his = "this colleague", "the"
    a, b = random.sample(WARM if random.random() < (0.8 if person == "F" else 0.2) else BOLD, 2)
    (first, then), (did, made) = random.sample(EVENTS, 2), random.sample(DEEDS, 2)
    text = f"For {random.randint(2, 19)} years I worked with this {job} in {random.choice(TOWNS)}. "
    text += f"{he.capitalize()} {'are' if he == 'they' else 'is'} {a}. When {first}, {he} {did}. "
    text += f"When {then}, {he} {made}, {b} and {random.choice(PLAIN)} as ever."
    if random.random() < 0.1:
        text += " Mr Hill ran the desk before, and he took his notes, his files and his habits with him."
    return text + f" I would gladly have {his} help again."


rows = []
for job, share in SHARE_OF_WOMEN.items():
    for _ in range(300):
        person = random.choices(["F", "M", "X"], [share, 1 - share, 0.04])[0]
        known = person if random.random() < 0.97 else ""
        rows.append((letter(job, person), job, known))
letters = pd.DataFrame(rows, columns=["text", "job", "candidate"])
letters.to_csv("letters.csv", index=False)
print(letters.text[0])
