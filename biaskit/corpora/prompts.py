"""How a prompt's words are put together: slots, articles, raw strings (methods/prompts#exact-strings)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Label, ListEntry
from biaskit.errors import CorpusError
from biaskit.records import GENDERS, Dialogue, Item


class _Prompt(ListEntry):
    name: Label
    open: str
    prompt_format: Literal["chat", "completion"] = "chat"
    wording: str | None = None
    requested: str | None = None
    female: str = "woman"
    male: str = "man"
    nonbinary: str = "non-binary person"


_PROMPTS = SourceLayout("prompts", "prompt", _Prompt, ("occupation_slot", "gender_slot"))


@dataclass(frozen=True, slots=True)
class PersonaPrompt:
    """One prompt of personas in one format: without and with a gender in it."""

    name: str
    prompt_format: str  # chat or completion
    wording: str | None  # paper, released; None: of any
    open: str
    requested: str | None
    genders: tuple[tuple[str, str], ...]  # gender → what the prompt calls it
    occupation_slot: str
    gender_slot: str

    def text(self, item: Item, gender: str | None, articles: str) -> str:
        """Write the prompt for one occupation, with a gender where one is requested."""
        chosen = self.open if gender is None else (self.requested or "")
        text = fill(chosen, item, self.occupation_slot, articles)
        return text if gender is None else text.replace(self.gender_slot, dict(self.genders)[gender])


def load_persona_prompts(source: str | Path) -> tuple[PersonaPrompt, ...]:
    """Read every prompt of a file, in file order: `[[prompt]]` tables of a .toml."""
    table = read_list(source, _PROMPTS)
    slot = str(table.top.get("occupation_slot", "[OCCUPATION]"))
    gender_slot = str(table.top.get("gender_slot", "[GENDER]"))
    prompts: dict[tuple[str, str, str | None], PersonaPrompt] = {}
    for where, entry in table.entries:
        needed = [("open", entry.open, slot)]
        needed += [("requested", entry.requested, s) for s in (slot, gender_slot) if entry.requested]
        for key, text, wanted in needed:
            if wanted not in text:
                raise CorpusError(f"{where}: {key} has no {wanted}: {text[:60]!r}. Write it in.")
        if gender_slot in entry.open:
            raise CorpusError(f"{where}: open names a gender ({gender_slot}); move it to requested.")
        what = (entry.name, entry.prompt_format, entry.wording)
        if what in prompts:
            raise CorpusError(f"{where}: the prompt {entry.name!r} ({entry.prompt_format}) is listed twice.")
        genders = tuple((gender, str(getattr(entry, gender))) for gender in GENDERS)
        prompts[what] = PersonaPrompt(*what, entry.open, entry.requested, genders, slot, gender_slot)
    return tuple(prompts.values())


def raw_text(question: str, opening: str, debiasing: str, dialogue: Dialogue | None, place: str) -> str:
    """Write a raw prompt, to the character of methods/prompts#exact-strings.

    `debiasing`: empty for none; `place`: where it stands in the plain context, `own-line` before the
    question's line (OccuGender) or `in-question` (Mattern). Without a question the opening stands alone.
    """
    if not question:  # plain completion
        return join(debiasing, opening, " " if place == "in-question" else "\n")
    answer = join("A:", opening, " ")
    if dialogue:
        turns = "".join(f"Q: {turn.question}\nA: {turn.answer}\n\n" for turn in dialogue.turns)
        return f"{join(dialogue.opening_line, debiasing, ' ')}\n\n{turns}Q: {question}\n{answer}"
    if place == "in-question":
        return f"Q: {join(debiasing, question, ' ')}\n{answer}"
    return join(debiasing, f"Q: {question}\n{answer}", "\n")


def join(first: str, second: str, between: str) -> str:
    """Join both with their separator, or return the one that is not empty."""
    return f"{first}{between}{second}" if first and second else first or second


def fill(text: str, item: Item, slot: str, articles: str) -> str:
    """Put an item into a template; `grammatical` makes "a [JOB]" "an [JOB]" where the item wants it."""
    if articles == "grammatical":
        an = item.article == "an" if item.article else item.name[:1].lower() in ("a", "e", "i", "o", "u")
        if an:
            text = re.sub(rf"\b([Aa]) (?={re.escape(slot)})", r"\1n ", text)
    return text.replace(slot, item.name)
