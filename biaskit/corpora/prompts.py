"""How a prompt's words are put together: slots, articles, raw strings (docs/methods.md#exact-strings)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from biaskit.corpora.rows import SourceLayout, read_source_rows
from biaskit.corpora.sources import SourceRow, label_of, string_of
from biaskit.errors import CorpusError
from biaskit.records import GENDERS, Dialogue, Item

_PROMPTS = SourceLayout(
    kind="prompts",
    table="prompt",
    required=("name", "open"),
    optional=("form", "wording", "specified", *GENDERS),
    top=("occupation_slot", "gender_slot"),
)
_DEFAULT_WORDS = {"female": "woman", "male": "man", "nonbinary": "non-binary person"}


@dataclass(frozen=True, slots=True)
class PersonaPrompt:
    """One prompt of the generation engine in one form: without and with a gender in it."""

    name: str
    form: str  # chat or completion
    wording: str | None  # paper, released; None: of any
    open: str
    specified: str | None
    genders: tuple[tuple[str, str], ...]  # gender → what the prompt calls it
    occupation_slot: str
    gender_slot: str

    def text(self, item: Item, gender: str | None, articles: str) -> str:
        """The prompt for one occupation; with a gender where one is specified."""
        chosen = self.open if gender is None else (self.specified or "")
        text = fill(chosen, item, self.occupation_slot, articles)
        return text if gender is None else text.replace(self.gender_slot, dict(self.genders)[gender])


def load_persona_prompts(source: str | Path) -> tuple[PersonaPrompt, ...]:
    """Every prompt of a file, in file order: `[[prompt]]` tables of a .toml."""
    table = read_source_rows(source, _PROMPTS)
    slot = string_of(table.top, "occupation_slot") or "[OCCUPATION]"
    gender_slot = string_of(table.top, "gender_slot") or "[GENDER]"
    prompts = tuple(_persona_prompt(row, slot, gender_slot) for row in table.rows)
    seen: set[tuple[str, str, str | None]] = set()
    for prompt, row in zip(prompts, table.rows, strict=True):
        what = (prompt.name, prompt.form, prompt.wording)
        if what in seen:
            raise CorpusError(f"{row.where}: the prompt {prompt.name!r} ({prompt.form}) stands there twice.")
        seen.add(what)
    return prompts


def _persona_prompt(row: SourceRow, slot: str, gender_slot: str) -> PersonaPrompt:
    form = string_of(row, "form") or "chat"
    if form not in ("chat", "completion"):
        raise CorpusError(f"{row.where}: form is {form!r}. Write chat or completion.")
    opened, specified = string_of(row, "open"), string_of(row, "specified") or None
    needed = [("open", opened, slot)]
    needed += [("specified", specified, s) for s in (slot, gender_slot)] if specified else []
    for key, text, wanted in needed:
        if wanted not in text:
            raise CorpusError(f"{row.where}: {key} has no {wanted}: {text[:60]!r}. Write it in.")
    if gender_slot in opened:
        raise CorpusError(f"{row.where}: open names a gender ({gender_slot}); that belongs into specified.")
    words = {gender: string_of(row, gender) or _DEFAULT_WORDS[gender] for gender in GENDERS}
    return PersonaPrompt(
        name=label_of(row, "name"),
        form=form,
        wording=string_of(row, "wording") or None,
        open=opened,
        specified=specified,
        genders=tuple(words.items()),
        occupation_slot=slot,
        gender_slot=gender_slot,
    )


def raw_text(question: str, opening: str, said: str, dialogue: Dialogue | None, place: str) -> str:
    """A raw prompt, to the character of docs/methods.md#exact-strings.

    `said` is the instruction (empty: none); `place` is where it stands in the plain setting, `own-line`
    before the question's line (OccuGender) or `in-question` (Mattern).
    """
    answer = join("A:", opening, " ")
    if dialogue:
        turns = "".join(f"Q: {turn.question}\nA: {turn.answer}\n\n" for turn in dialogue.turns)
        return f"{join(dialogue.opening_line, said, ' ')}\n\n{turns}Q: {question}\n{answer}"
    if place == "in-question":
        return f"Q: {join(said, question, ' ')}\n{answer}"
    return join(said, f"Q: {question}\n{answer}", "\n")


def join(first: str, second: str, between: str) -> str:
    """Both with their separator, or the one that is there."""
    return f"{first}{between}{second}" if first and second else first or second


def fill(text: str, item: Item, slot: str, articles: str) -> str:
    """Put an item into a template; `grammatical` makes "a [JOB]" "an [JOB]" where the item wants it."""
    if articles == "grammatical":
        an = item.article == "an" if item.article else item.name[:1].lower() in ("a", "e", "i", "o", "u")
        if an:
            text = re.sub(rf"\b([Aa]) (?={re.escape(slot)})", r"\1n ", text)
    return text.replace(slot, item.name)
