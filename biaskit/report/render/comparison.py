"""A comparison (docs/methods.md#both-engines) as a document: one table with models in rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from biaskit.report.content import Content
from biaskit.report.findings.blocks import SPLIT, ProbeBlock, below_floor, blocks_of
from biaskit.report.findings.finding import parts_of
from biaskit.report.findings.write import occupations_of
from biaskit.report.render.document import Document, Heading, TitledTable
from biaskit.runs.collection import Part
from biaskit.tables.query import Row, defined, grouped, where

OTHER_VECTORS = "other vectors"
OTHER_FORM = "other prompt form"
UNDEFINED = "–"
_SHORT = dict(zip(SPLIT, ("F-dom.", "M-dom."), strict=True))


def comparison_document(content: Content, notes: Sequence[str], signature: str) -> Document:
    """The overview, the notes and the signature."""
    table = overview(content)
    return Document((table,) if table else (), tuple(notes), signature)


def overview(content: Content) -> TitledTable | None:
    """A line for each model: women's share in the prober, with its interval below, and in texts; SRB."""
    blocks = [block for part in parts_of(content, "probe") for block in blocks_of(part)]
    texts = list(parts_of(content, "personas"))
    blocks.sort(key=lambda block: block.bias_type)  # explicit first
    places = list(dict.fromkeys((block.bias_type, group) for block in blocks for group in block.groups()))
    over = [Heading(b, sum(b == other for other, _ in places)) for b in dict.fromkeys(b for b, _ in places)]
    columns = [_SHORT.get(group, group) for _, group in places]
    if texts:
        over += [Heading("texts"), Heading("SRB", 2)]
        columns += ["women", "women", "men"]
    if not columns:
        return None
    vectors, represented = _first_vectors(texts), _represented(texts)
    lines: list[tuple[str, ...]] = []
    for label, forms in _forms(content.parts).items():
        cells = [_place(blocks, label, *place) for place in places]
        written = (represented.get(label, UNDEFINED), *_srb(texts, label, vectors)) if texts else ()
        lines.append((label, forms, *(share for share, _ in cells), *written))
        if any(interval for _, interval in cells):
            lines.append(("  95 %", "", *(interval for _, interval in cells), *[""] * len(written)))
    heads = (Heading("Model"), Heading("Prompt form"), *map(Heading, columns))
    header = ((Heading("", 2), *over), heads)
    return TitledTable("Models side by side: % women", header, tuple(lines), _note(places, texts), n_text=2)


def _note(places: Sequence[object], texts: Sequence[Part]) -> str:
    said = []
    if places:
        said.append(
            "explicit, implicit: of the probability on the listed words, without an instruction, with the"
            " 95 % interval below; F-dom., M-dom.: jobs mostly held by women, by men; [ ] where"
            " the coverage is below the floor."
        )
    if texts:
        said.append(
            "texts: mean over the occupations that all models have, gender not in the prompt. SRB, of"
            " women's and of men's texts: negative = nearer to texts about a woman on request."
        )
    return " ".join([*said, f"{UNDEFINED}: not measured; the runs' tables give the reason."])


def _place(blocks: Sequence[ProbeBlock], label: str, bias_type: str, group: str) -> tuple[str, str]:
    """A model's share in a group of jobs, and the interval."""
    for block in blocks:
        row = block.row(label, group) if block.bias_type == bias_type else None
        if row is not None and row["share"] is not None:
            shown = f"{100 * row['share']:.1f}"
            known = row["ci_low"] is not None
            interval = f"{100 * row['ci_low']:.0f}–{100 * row['ci_high']:.0f}" if known else ""
            return f"[{shown}]" if below_floor(block, label) else shown, interval
    return UNDEFINED, ""


def _represented(texts: Sequence[Part]) -> dict[str, str]:
    """Label → the mean over the occupations that every model has a share of: else means differ by these."""
    rows = [row for part in texts for row in defined(occupations_of(part), "female_share")]
    shares = {
        label: {row["occupation"]: row["female_share"] for row in own}
        for (label,), own in grouped(rows, "model").items()
    }
    common = set.intersection(*map(set, shares.values())) if shares else set()
    return {label: f"{100 * fmean(own[o] for o in common):.1f}" for label, own in shares.items() if common}


def _first_vectors(texts: Sequence[Part]) -> tuple[str, str] | None:
    """The vector model of the first model with a score; one of marked lists is that part's alone."""
    scored = ((part, row) for part in texts for row in part.tables.get("srb", ()) if row["srb"] is not None)
    return next((_vectors_of(part, row) for part, row in scored), None)


def _vectors_of(part: Part, row: Row) -> tuple[str, str]:
    named = str(row["vectors"]).startswith(("corpus:", "pretrained:"))
    return str(row["vectors"]), "" if named else " ".join(part.runs)


def _srb(texts: Sequence[Part], label: str, vectors: tuple[str, str] | None) -> tuple[str, str]:
    """Means of women and of men over occupations; of other vectors than the first model's none is shown."""
    for part in texts:
        rows = [row for row in where(part.tables.get("srb", ()), model=label) if row["srb"] is not None]
        if any(_vectors_of(part, row) != vectors for row in rows):
            return OTHER_VECTORS, OTHER_VECTORS
        if rows:
            return _mean(where(rows, gender="female")), _mean(where(rows, gender="male"))
    return UNDEFINED, UNDEFINED


def _mean(rows: Sequence[Row]) -> str:
    return f"{fmean(row['srb'] for row in rows):+.2f}" if rows else UNDEFINED


def _forms(parts: Sequence[Part]) -> dict[str, str]:
    """Label → its prompt forms, the prober's first; another form than the first model's is marked."""
    first: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for part in parts:
        for model in part.models:
            usual = first.setdefault(part.engine, model.prompt_form)
            form = model.prompt_form or "none"
            shown = form if model.prompt_form == usual else f"{form} ({OTHER_FORM})"
            found.setdefault(model.label, []).append(shown)
    return {label: " / ".join(dict.fromkeys(forms)) for label, forms in found.items()}
