"""One style in what users read: strings of the package, its labels, shipped titles and the documents."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from places import ROOT, is_written

import biaskit as bk
from biaskit.cli import COMMANDS, cli

DROPPED: Mapping[str, str] = {
    # ways of saying it → what to write
    r"stands? (beside|there|in (the|its|every|each)|under|alone)": "is in, also gives",
    r"lies? (in|inside|between|beyond|beside|there|elsewhere)": "is in, is between",
    r"(told|tells?|telling) (\w+ ){1,4}apart|told apart": "separated, held-out AUC",
    r"(held|hold|holds) against|holds (theirs?|no|an?|the|at (most|least))": "compared with, has, contains",
    r"(comes|came|come) to (nothing|the same)|what \w+( \w+)? comes? to": "says, results in",
    r"anew": "again",
    r"asks? again|asked (again|for|of|alike)": "query again, request",
    r"laid out|lays? out|taken over|took over": "arranged, reused",
    r"reckon\w*": "compute, assume",
    r"by (itself|themselves)": "alone",
    r"(texts?|groups?|labels?|templates?|names?|columns?|items?) of (your|our|its|their) own": "your own …",
    r"probers?": "biaskit probe",
    r"(debiasing instructions?|instruction \d)": "debiasing prompt",
    r"(its|the|their|of every) nulls?(?! hypothesis)": "permutation baseline",
    r"gender words": "gendered words",
    r"asked outright": "explicit",
    r"crossed random|random factors": "two-way random effects",
    r"no verdicts?|verdict (on|of)": "conclusion",
    r"held-out size": "AUC",
    r"polic(y|ies)|(the|a) gate": "thresholds, check",
    r"(as well as|as) by a coin|a coin gives": "chance",
    r"the (house|rooms?)": "package, module, endpoint",
}
"""What users no longer read → what stands for it; each is a regular expression of whole words."""
PATTERN = re.compile(rf"\b(?:{'|'.join(DROPPED)})\b", re.IGNORECASE)
ALLOWED: Mapping[str, str] = {
    "content management policy": "servers' own errors",
    "content policy": "servers' own errors",
    "usage policies": "servers' own errors",
    "Content-Security-Policy": "a header's name",
}
"""Texts that are not ours to word, with the reason."""
FOLDERS = ("tutorials", "howto", "concepts", "reference", "methods")


def found_in(text: str) -> list[str]:
    """The dropped words of a text, code left out: names of columns, keys and files stay as they are."""
    plain = re.sub(r"`[^`]*`|\{[^{}]*\}|\b\w+_\w+\b|--[a-z-]+", " ", text)
    for allowed in ALLOWED:
        plain = plain.replace(allowed, " ")
    return [match[0] for match in PATTERN.finditer(" ".join(plain.split()))]


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Strings of several words that are no docstrings: messages, notes, sentences, captions."""
    tree = ast.parse(path.read_text("utf-8"))
    stated = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    } | {id(node.format_spec) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)}
    for node in ast.walk(tree):
        if id(node) in stated | inner:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def prose_of(markdown: str) -> Iterator[tuple[int, str]]:
    """Paragraphs of a document, without blocks of code, comments and the targets of links."""
    markdown = re.sub(
        r"```.*?```|<!--.*?-->|<[^<>\n]*>", lambda m: "\n" * m[0].count("\n"), markdown, flags=re.S
    )
    markdown = re.sub(r"\]\([^()]*\)", "]", markdown)
    line = 1
    for paragraph in re.split(r"(\n\s*\n)", markdown):
        yield line, paragraph
        line += paragraph.count("\n")


def texts_in(value: Any) -> Iterator[str]:
    """Every text of a TOML file."""
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from texts_in(part)


def package() -> Iterator[tuple[str, str]]:
    """Place and text of what the package prints."""
    for path in sorted((ROOT / "biaskit").rglob("*.py")):
        yield from ((f"{path.relative_to(ROOT)}:{n}", text) for n, text in strings_of(path))
    for path in sorted((ROOT / "biaskit").rglob("*.toml")):
        stated = tomllib.loads(path.read_text("utf-8"))
        yield from ((path.name, text) for text in texts_in(stated))
    page = (ROOT / "biaskit/report/page/page.html.j2").read_text("utf-8")
    yield "page.html.j2", re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^<>]*>", " ", page, flags=re.S)


def shipped() -> Iterator[tuple[str, str]]:
    """Place and text of what `biaskit corpora` prints of studies and corpora."""
    for path in sorted((ROOT / "configs").glob("*.toml")):
        study = tomllib.loads(path.read_text("utf-8"))
        yield from (
            (path.name, text) for text in texts_in([study.get("summary", ""), study.get("table", {})])
        )
    for path in sorted((ROOT / "corpora").glob("*/corpus.toml")):
        about = tomllib.loads(path.read_text("utf-8"))
        yield from (
            (str(path), text) for text in texts_in([about["title"], about["notes"], about["licence"]])
        )


def helps() -> Iterator[tuple[str, str]]:
    """Place and text of every help text."""
    for name in COMMANDS:
        context = click.Context(cli, info_name="biaskit")
        command = cli.get_command(context, name)
        assert command is not None
        yield f"biaskit {name} --help", command.get_help(click.Context(command, info_name=name))


def docstrings() -> Iterator[tuple[str, str]]:
    """Place and text of what `help` says of each public name, examples left out."""
    for name in bk.__all__:
        public = getattr(bk, name)
        members = [
            (f"{name}.{member}", value)
            for member, value in (inspect.getmembers(public) if inspect.isclass(public) else ())
            if not member.startswith("_") and not (isinstance(value, type) or _is_foreign(public, member))
        ]
        for place, value in ((name, public), *members):
            lines = (
                (inspect.getdoc(value) or "").splitlines()
                if callable(value) or hasattr(value, "fget")
                else []
            )
            yield f"help(bk.{place})", " ".join(line for line in lines if not line.startswith((">>>", "...")))


def _is_foreign(public: type, member: str) -> bool:
    """Whether a member comes from a class of another package."""
    owner = next((base for base in public.__mro__ if member in vars(base)), public)
    return not owner.__module__.startswith("biaskit")


def documents() -> Iterator[tuple[str, str]]:
    """Place and text of the documents for readers."""
    docs = ROOT / "docs"
    paths = [*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *docs.glob("*.md")]
    paths += [path for folder in FOLDERS for path in (docs / folder).glob("*.md")]
    for path in sorted(filter(is_written, paths)):
        place = path.relative_to(ROOT)
        yield from ((f"{place}:{n}", text) for n, text in prose_of(path.read_text("utf-8")))


@pytest.mark.parametrize("texts", [package, shipped, helps, docstrings, documents])
def test_what_users_read_has_one_style(texts: Any) -> None:
    wrong = {
        f"{place}: {' '.join(text.split())[:300]}": words
        for place, text in texts()
        if (words := found_in(text))
    }
    assert not wrong, "\n".join(f"{words} in {text}" for text, words in wrong.items())


def test_the_words_are_found_and_others_are_not() -> None:
    assert ["told apart"] == found_in("texts told apart")
    assert ["stands beside", "reckons"] == found_in("it stands beside what he reckons")
    assert [] == found_in(
        "the column `verdict`, workforce_share, --hold-out, a held-out half, as long as it holds"
    )
