"""Templates x jobs x instructions x settings: every cell of the full product, and its prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from biaskit.common.provenance import ROW_FORMAT, SCORING_VERSION, digest, key_of
from biaskit.corpora.loaders import (
    BIAS_TYPES,
    load_dialogue,
    load_expression_sets,
    load_items,
    load_templates,
    render_forms,
)
from biaskit.corpora.pairs import load_pairs
from biaskit.corpora.prompts import fill, join, raw_text
from biaskit.corpora.sources import source_digest
from biaskit.errors import StudyError, TableError, nearest
from biaskit.records import (
    NO_INSTRUCTION,
    BiasType,
    Cell,
    Dialogue,
    Expression,
    Instruction,
    Item,
    Prompt,
    PromptForm,
    SentencePair,
    Setting,
    Template,
    as_record,
)
from biaskit.study.config import choose_instructions, parts_of, select
from biaskit.study.keys import DebiasingChoice, ProbeStudy, TargetWordChoice
from biaskit.tables.io import check_group_names

MOST_CELLS = 10_000_000
SENTENCE = Item("sentence", "sentences")
"""The one item of a study of pairs: each pair is a template without a slot."""
CELL = ("bias_type", "template_id", "job", "instruction_id", "setting", "prompt_form")
"""The columns of a row that name a cell of one model."""


@dataclass(frozen=True, slots=True)
class ProbeDesign:
    """A study with its lists read and its choices made: everything that each model is asked."""

    study: ProbeStudy
    slot: str
    items: tuple[Item, ...]
    templates: tuple[Template, ...]
    instructions: tuple[Instruction | None, ...]  # None: no instruction (id 0)
    settings: tuple[Setting, ...]
    dialogue: Dialogue | None
    expressions: dict[tuple[BiasType, int], tuple[Expression, ...]]  # by (bias type, template id)
    groups: tuple[str, ...]
    contrast: tuple[str, str]
    sources: dict[str, str]  # every list that was read → its SHA-256
    pairs: tuple[SentencePair, ...] = ()  # template 1 is the first of them
    notes: tuple[str, ...] = ()  # what a careful reader must know of the lists

    @property
    def n_cells(self) -> int:
        """Cells per model."""
        return len(self.templates) * len(self.items) * len(self.instructions) * len(self.settings)

    @property
    def frames(self) -> dict[str, dict[int, str]]:
        """Bias type → template → its frame; templates of one frame count as one."""
        frame_of: dict[str, dict[int, str]] = {}
        for template in self.templates:
            if template.frame:
                frame_of.setdefault(template.bias_type, {})[template.id] = template.frame
        return frame_of

    @property
    def levels(self) -> dict[str, tuple[int, ...]]:
        """Level of abstraction → ids of those of its instructions that are run, in order."""
        ids_of: dict[str, list[int]] = {}
        for instruction in self.instructions:
            if instruction is not None and instruction.level:
                ids_of.setdefault(instruction.level, []).append(instruction.id)
        return {level: tuple(ids) for level, ids in ids_of.items()}


Pairs = Sequence[Mapping[str, object]]
"""Pairs of sentences as a program holds them: their columns by name."""


def resolve_design(study: ProbeStudy, pairs: Pairs | None = None) -> ProbeDesign:
    """Read and check what the study names, and choose from it; `pairs`: in place of the study's list."""
    if study.pairs:
        return _design_of_pairs(study, pairs)
    items = load_items(study.jobs.source)
    items = tuple(select(study.jobs.select, [i.name for i in items], range(1, len(items) + 1), items, "jobs"))
    listed = load_templates(study.templates.source)
    slot = study.templates.slot or listed.slot
    for template in listed.templates:
        if slot not in template.question:
            raise StudyError(
                f"{template.bias_type} template {template.id} has no {slot}: {template.question!r}."
                " Set templates.slot to the slot it has."
            )
    # Ids count within a bias type, and an id that one type has need not be in the other.
    types = [kind for kind in BIAS_TYPES if study.bias_type in (kind, "both")]
    of_types = [template for kind in types for template in listed.templates if template.bias_type == kind]
    ids = sorted({template.id for template in of_types})
    chosen = set(select(study.templates.select, [], ids, ids, "templates"))
    templates = tuple(template for template in of_types if template.id in chosen)
    if not items or not templates:
        raise StudyError(f"{study.name}: no {'jobs' if not items else 'templates'} are left.")
    settings: tuple[Setting, ...] = ("plain", "dialogue") if study.context == "both" else (study.context,)
    expressions, groups = _choose_expressions(study, templates)
    parts = parts_of(study.debiasing_prompts.select)
    # 0, no instruction, is always there: what a range from 0 chooses begins at 1.
    numbers = [f"1-{part[2:]}" if part.startswith("0-") else part for part in parts]
    sources = [study.jobs.source, study.templates.source, study.target_words.source]
    if study.debiasing_prompts.source is not None and study.debiasing_prompts.select != "none":
        sources.append(study.debiasing_prompts.source)
    if "dialogue" in settings:
        sources.append(study.dialogue)
    design = ProbeDesign(
        study=study,
        slot=slot,
        items=items,
        templates=templates,
        instructions=choose_instructions(study, numbers, "give a file, as in --debiasing-prompts mine.txt"),
        settings=settings,
        dialogue=load_dialogue(study.dialogue) if "dialogue" in settings else None,
        expressions=expressions,
        groups=groups,
        contrast=choose_contrast(study, groups),
        sources={source: source_digest(source) for source in sources},
    )
    try:  # before the run: afterwards its rows would be paid for
        check_group_names("probe", groups, design.contrast, study.target_words.source)
    except TableError as error:
        raise StudyError(str(error)) from error
    if design.n_cells > MOST_CELLS:
        raise StudyError(
            f"{design.n_cells:,} prompts are more than {MOST_CELLS:,}: choose fewer jobs or templates."
        )
    return design


def _design_of_pairs(study: ProbeStudy, given: Pairs | None) -> ProbeDesign:
    """Make a template of each pair, whose target words are its sentences."""
    for option, (name, unset) in _NOT_WITH_PAIRS.items():
        if getattr(study, name) != unset:
            raise StudyError(f"Pairs of sentences are scored as they are: leave out {option}.")
    pairs, notes = load_pairs(study.pairs if given is None else given)
    groups = ("female", "male", "diverse") if any(pair.diverse for pair in pairs) else ("female", "male")
    sentences = [tuple(Expression(*sentence) for sentence in pair.sentences.items()) for pair in pairs]
    stated = digest([as_record(p) for p in pairs]) if given is not None else source_digest(study.pairs)
    return ProbeDesign(
        study=study,
        slot="",
        items=(SENTENCE,),
        templates=tuple(Template(n, "pairs", pair.prefix) for n, pair in enumerate(pairs, 1)),
        instructions=(None,),
        settings=("plain",),
        dialogue=None,
        expressions={("pairs", n): of_pair for n, of_pair in enumerate(sentences, 1)},
        groups=groups,
        contrast=("female", "male"),
        sources={study.pairs: stated},
        pairs=pairs,
        notes=notes,
    )


_NOT_WITH_PAIRS: Mapping[str, tuple[str, object]] = {
    "--system-prompt": ("system_prompt", None),
    "--bias-type": ("bias_type", "both"),
    "--target-words": ("target_words", TargetWordChoice()),
    "--context": ("context", "plain"),
    "--continue": ("continuations", 0),
    "--prompt-format": ("prompt_format", "auto"),
    "--debiasing-prompts": ("debiasing_prompts", DebiasingChoice()),
    "word_boundary": ("word_boundary", "token"),
    "contrast": ("contrast", None),
    "interval": ("interval", "crossed"),
}
"""Options that change a prompt or a target word: key, and the value that changes nothing."""


def _choose_expressions(
    study: ProbeStudy, templates: tuple[Template, ...]
) -> tuple[dict[tuple[BiasType, int], tuple[Expression, ...]], tuple[str, ...]]:
    """Find each template's expressions, and the groups that all of them name."""
    sets = load_expression_sets(study.target_words.source)
    only_set = next(iter(sets)) if len(sets) == 1 else None
    expressions_of, groups = {}, None
    forms: dict[str, tuple[Expression, ...]] = {}  # made once for all templates of a set
    for template in templates:
        of_type = getattr(study.target_words, template.bias_type)
        # The template's own set, else its bias type's, else the set called like the bias type.
        candidates = [name for name in (template.expressions, of_type, template.bias_type) if name]
        name = (
            study.target_words.every or only_set or next((c for c in candidates if c in sets), candidates[0])
        )
        if name not in sets:
            raise StudyError(
                f"{template.bias_type} template {template.id} needs the target words {name!r}, which are not"
                f" in {study.target_words.source}.{nearest(name, sets)} It has {', '.join(sets)}."
            )
        if name not in forms:
            forms[name] = render_forms(sets[name])
        names = tuple(group for group, _ in sets[name].groups)
        if groups is not None and names != groups:
            raise StudyError(
                f"All target words of a study need the same groups in the same order: {name} has"
                f" {', '.join(names)}, another set has {', '.join(groups)}."
            )
        groups = names
        expressions_of[(template.bias_type, template.id)] = forms[name]
    return expressions_of, groups or ()


def choose_contrast(study: ProbeStudy, groups: tuple[str, ...]) -> tuple[str, str]:
    """Choose the two groups that are contrasted: the study's, else female and male, else the first two."""
    if study.contrast is None:
        return ("female", "male") if {"female", "male"} <= set(groups) else (groups[0], groups[1])
    for name in study.contrast:
        if name not in groups:
            raise StudyError(
                f"contrast names {name!r}; the groups are {', '.join(groups)}.{nearest(name, groups)}"
            )
    if study.contrast[0] == study.contrast[1]:
        raise StudyError(f"contrast names {study.contrast[0]!r} twice.")
    return study.contrast


Placed = tuple[Cell, Template, Instruction | None, Item]
"""A cell, and the entries of the study's lists that its prompt is made of."""


def cell_at(design: ProbeDesign, place: int, model: str, form: PromptForm) -> Placed:
    """Make the cell at a place of the product, from 0; jobs run fastest, templates slowest."""
    place, job = divmod(place, len(design.items))
    place, number = divmod(place, len(design.instructions))
    place, setting = divmod(place, len(design.settings))
    template, instruction, item = design.templates[place], design.instructions[number], design.items[job]
    cell = Cell(
        model=model,
        bias_type=template.bias_type,
        template_id=template.id,
        job=item.name,
        job_group=item.group,
        labour_female_share=item.labour_female_share,
        instruction_id=NO_INSTRUCTION if instruction is None else instruction.id,
        setting=design.settings[setting],
        prompt_form=form,
    )
    return cell, template, instruction, item


def product(design: ProbeDesign, model: str, form: PromptForm) -> Iterator[Placed]:
    """Yield every cell of one model in study order, with what its prompt is made of."""
    return (cell_at(design, place, model, form) for place in range(design.n_cells))


def cells(
    design: ProbeDesign, model: str, form: PromptForm
) -> Iterator[tuple[Cell, Prompt, tuple[Expression, ...]]]:
    """Yield every cell of one model in study order, with its prompt and expressions."""
    for cell, template, instruction, item in product(design, model, form):
        prompt = build_prompt(design, template, item, instruction, cell.setting, form)
        yield cell, prompt, design.expressions[(template.bias_type, template.id)]


def build_prompt(
    design: ProbeDesign,
    template: Template,
    item: Item,
    instruction: Instruction | None,
    setting: Setting,
    form: PromptForm,
) -> Prompt:
    """Build a cell's prompt (raw: methods/prompts#exact-strings; chat: methods/prompts#prompt-forms)."""
    study = design.study
    if form == "sentence":
        return Prompt(template.question, form)
    question = fill(template.question, item, design.slot, study.articles)
    opening = fill(template.opening, item, design.slot, study.articles)
    instructed = instruction.text if instruction else ""
    system = study.system_prompt or ""
    if study.debiasing_position == "system" and instructed:
        system, instructed = "\n".join(filter(None, (system, instructed))), ""
    dialogue = design.dialogue if setting == "dialogue" else None
    if form == "chat-prefill":
        between = " " if study.debiasing_place == "in-question" else "\n"
        return Prompt(
            text=question if dialogue else join(instructed, question, between),
            form=form,
            system=system or None,
            preamble=join(dialogue.opening_line, instructed, " ") if dialogue else None,
            turns=dialogue.turns if dialogue else (),
            prefill=opening,
        )
    text = raw_text(question, opening, instructed, dialogue, study.debiasing_place)
    return Prompt(text=text, form=form, system=system or None)


def cell_key(
    cell: Cell,
    prompt: Prompt,
    expressions: tuple[Expression, ...],
    fingerprint: str,
    study: ProbeStudy,
    estimator: object = "exact",
) -> str:
    """Make a row's key: all that the cell's log-probabilities depend on, no more (methods/index#keys)."""
    return key_of(
        {
            **_model_in_key(fingerprint, study, estimator),
            "cell": [cell.bias_type, cell.template_id, cell.job, cell.instruction_id, cell.setting],
            "prompt": as_record(prompt),
            "expressions": [[e.group, e.text] for e in expressions],
        }
    )


def model_key(fingerprint: str, study: ProbeStudy, estimator: object = "exact") -> str:
    """Make the key of what all rows of a model share: rows with one `model_key` differ by cell alone.

    That holds inside a folder, where a second prompt for the same cell is refused (`compatibility`).
    """
    return key_of(_model_in_key(fingerprint, study, estimator))


def _model_in_key(fingerprint: str, study: ProbeStudy, estimator: object) -> dict[str, object]:
    return {
        "row_format": ROW_FORMAT,
        "scoring": SCORING_VERSION,
        "model": fingerprint,
        "word_boundary": study.word_boundary,
        "estimator": estimator,
    }
