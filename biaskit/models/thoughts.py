"""What of a model's words is thought, and what is the answer (methods/texts#thoughts).

How thoughts are written is data: words between pairs of signs, the marks of single families, channels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from biaskit.records import Sample

Thinking = Literal["auto", "on", "off"]
_SIGNS = (
    *(("<{}>", "</{}>"), ("<|{}|>", "<|/{}|>"), ("◁{}▷", "◁/{}▷")),
    *(("<|begin_of_{}|>", "<|end_of_{}|>"), ("<|start_{}|>", "<|end_{}|>"), ("<|{}_start|>", "<|{}_end|>")),
)
_WORDS = ("think", "thinking", "thought", "thoughts", "reasoning", "seed:think", "longcat_think")
_ANALYSIS, _FINAL = "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"
_LOWER = (
    *((first.format(word), last.format(word)) for word in _WORDS for first, last in _SIGNS),
    ("[think]", "[/think]"),  # other words in brackets are headings
    ("<|channel>thought", "<channel|>"),
    ("<unused94>thought", "<unused95>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    (_ANALYSIS, _FINAL),
)
MARKS: tuple[tuple[str, str], ...] = (*_LOWER, *((first.upper(), last.upper()) for first, last in _LOWER))
"""Opening and closing mark of each way to write a thought; any case is read."""
FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Where servers put thoughts that they part from the text themselves."""
SWITCHES: Mapping[str, Mapping[str, object]] = {
    **{name: {"on": True, "off": False} for name in ("enable_thinking", "thinking", "reasoning")},
    "thinking_budget": {"off": 0},
}
"""Variables by which chat templates turn thoughts on and off."""

_PATTERNS = {  # the other channel, or a recipient, may stand inside the marks of channels
    _ANALYSIS: r"<\|channel\|>(?:analysis|commentary)[^<]*<\|message\|>",
    _FINAL: r"(?:<\|end\|>)?\s*(?:<\|start\|>assistant)?<\|channel\|>final[^<]*<\|message\|>",
}


def _pattern(mark: str) -> str:
    return _PATTERNS.get(mark, re.escape(mark))


_PAIRS = (
    *((_pattern(first), _pattern(last)) for first, last in _LOWER),
    # Marks of channels are special tokens, which decoders leave out: their names stay, glued to the words.
    (r"(?-i:\Aanalysis(?=\w|.*?assistantfinal))", r"(?-i:assistantfinal|\Afinal(?=[A-Z]))"),
    ("Here is my thought process:", "Here is my response:"),
)
_FLAGS = re.DOTALL | re.MULTILINE | re.IGNORECASE
_WHOLE = "|".join(f"{first}.*?{last}" for first, last in _PAIRS)
_CLOSED = re.compile(rf"^[ \t]*(?:{_WHOLE})", _FLAGS)
_OPENINGS = "|".join(first for first, _ in _PAIRS[:-1])
_UNCLOSED = re.compile(rf"(?:\A\s*(?:{_OPENINGS})|^[ \t]*<think>[ \t]*$).*", _FLAGS)
_IN_EVERY = ("<", "◁", "[", "thought process:", "assistantfinal")
"""One of these stands in every text with a thought, unless it begins with the name of a channel."""
_ENDS = "|".join(last for _, last in _PAIRS[:-1])
_CLOSING = re.compile(_ENDS, _FLAGS)
_ALONE = re.compile(rf"(?:^[ \t]*|(?<=[.!?…\"”)\]]))(?:{_ENDS})|(?:{_ENDS})[ \t]*$", _FLAGS)
"""A closing mark that no sentence is about: where a line or a sentence begins or ends."""
_OPENED = re.compile("|".join(f"({re.escape(first)})" for first, _ in _LOWER), re.IGNORECASE)
_WRAP = r"<[/|]*(?:answer|response|output|(?:begin|end)_of_solution|(?:start|end)_response|end)\|?>"
_WRAPS = re.compile(rf"\A\s*(?:{_WRAP}\s*)?|\s*{_WRAP}\s*\Z", re.IGNORECASE)
"""What some families write around the answer that follows a thought."""


def without_thoughts(text: str, opened: str = "") -> str:
    """Return the answer alone: empty where a thought never ended, the text itself where there is none.

    A thought begins a line. `opened`: the mark with which the prompt has begun one; elsewhere a closing mark
    alone ends a thought that a prompt began, unless nothing follows it. Marks inside a sentence are words
    about them, and stay; one that is never closed opens a thought where the text begins, or alone on a line.
    """
    holds = text.casefold().__contains__
    if not (opened or text.startswith(("analysis", "final")) or any(map(holds, _IN_EVERY))):
        return text
    answer = _CLOSED.sub("", opened + text)
    if alone := [*_ALONE.finditer(answer)]:
        after = answer[alone[-1].end() :]
        answer = after if after.strip() else answer[: alone[-1].start()]
    answer = _UNCLOSED.sub("", answer)
    return text if answer == text else _WRAPS.sub("", answer)


def parted(sample: Sample, opened: str = "") -> Sample:
    """Part a sample's thoughts from its answer: `text` is the answer, `raw` the whole where they differ."""
    answer = without_thoughts(sample.text, opened)
    return sample if answer == sample.text else replace(sample, text=answer, raw=sample.text)


def opened_by(prompt: str) -> str:
    """Return the opening mark of a thought that is open where a prompt ends; empty if there is none."""
    marks = [*_OPENED.finditer(prompt)]
    return marks[-1][0] if marks and not _CLOSING.search(prompt, marks[-1].end()) else ""


def begins_thought(text: str) -> bool | None:
    """Tell whether an answer that begins so begins with a thought; None while it may be half of a mark."""
    start = text.lstrip().casefold()
    if any(start.startswith(first.casefold()) for first, _ in MARKS) or start.startswith("<|channel|>"):
        return not start.startswith("<|channel|>final")
    return None if any(first.casefold().startswith(start) for first, _ in MARKS) else False


def for_template(thinking: Thinking) -> dict[str, object]:
    """Return the field of a chat request that tells a server's template to think or not, if any."""
    if thinking == "auto":
        return {}
    return {"chat_template_kwargs": {n: ways[thinking] for n, ways in SWITCHES.items() if thinking in ways}}


def thought_ended(last: str) -> bool:
    """Tell whether a thought that was open has ended, by the last words of an answer."""
    return _ALONE.search(f"{last}\n") is not None


def closing(opened: str, marks: tuple[str, str]) -> str:
    """Return what a prompt needs so that the answer comes next: the end of its thought, or an empty one."""
    first, last = next((pair for pair in MARKS if pair[0] == opened), marks)
    if last == _FINAL:
        return f"<|end|><|start|>assistant{last}" if opened else last
    return f"\n{last}\n\n" if opened else f"{first}\n\n{last}\n\n"


def inside_thought(where: str) -> str:
    """Say why nothing is scored at a place that a thought is open at, and what to do."""
    return (
        f"{where}, so the next words are not the answer: use --set thinking=off (a chat template's own"
        " switch), or --estimator sampling, which reads what follows the thoughts"
    )
