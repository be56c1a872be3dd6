"""The public tables as data: every name, column and key (docs/reading.md#tables).

Columns stand in the order of the file, each with a kind; the keys name a row, so no two rows may share
them. Columns are added at the right, before `reason`, and never renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["text", "integer", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; an undefined value of any kind is an empty field."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Numbers for every gender group: `<group><suffix>` for each suffix, then those of the next group."""

    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The number `<first>_minus_<second>` of the study's contrast."""


@dataclass(frozen=True, slots=True)
class TableScope:
    """Columns that only some studies have, such as those under instructions."""

    columns: tuple[Column, ...]


TablePart = Column | PerGroup | Difference | TableScope


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table, from left to right, and the keys that name one of its rows."""

    parts: tuple[TablePart, ...]
    keys: tuple[str, ...]


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


def _integers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "integer") for name in names)


def _numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "number") for name in names)


def _booleans(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "boolean") for name in names)


_BLOCK = (*_texts("model", "bias_type"), *_integers("instruction_id"), *_texts("setting", "prompt_form"))
_BLOCK_KEYS = ("model", "bias_type", "instruction_id", "setting", "prompt_form")
_END = _texts("reason")
_LIST_KEYS = ("model", "occupation", "origin", "gender", "against", "method")
_LIST = _texts(*_LIST_KEYS)
_GROUP_KEYS = ("model", "column", "group", "against", "gender", "method")
_GROUP = _texts(*_GROUP_KEYS)
_UNDER_INSTRUCTIONS = TableScope((*_integers("instruction_id"), *_texts("setting")))

_ANSWERS = TableScope(
    _integers(
        *("n_answers", "n_listed", "n_unknown", "n_both", "n_declines", "n_restates", "n_empty", "n_other")
    )
)
"""Of cells whose drawn answers are kept: how many there are, and how many of each outcome."""
SCHEMAS: Mapping[str, TableSchema] = MappingProxyType(
    {
        "probe_cells": TableSchema(
            parts=(
                *_texts("model", "bias_type"),
                *_integers("template_id"),
                *_texts("job", "job_group"),
                *_integers("instruction_id"),
                *_texts("setting", "prompt_form", "estimator"),
                PerGroup(("_mass",)),
                *_numbers("coverage"),
                PerGroup(("_share",)),
                PerGroup(("_share_low", "_share_high")),
                *_numbers("coverage_low", "coverage_high"),
                Column("below_floor", "boolean"),
                _ANSWERS,
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "template_id", "job"),
        ),
        "probe_jobs": TableSchema(
            parts=(
                *_BLOCK,
                *_texts("estimator", "job", "job_group"),
                *_numbers("labour_female_share"),
                PerGroup(("_share",)),
                Difference(),
                *_numbers("ci_low", "ci_high", "coverage"),
                *_integers("n_templates"),
                *_numbers("difference_low", "difference_high"),
                PerGroup(("_share_ci_low", "_share_ci_high")),
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "job"),
        ),
        "probe_groups": TableSchema(
            parts=(
                *_BLOCK,
                *_texts("estimator", "job_group", "gender"),
                *_numbers("share", "pooled_share", "se_templates", "ci_low", "ci_high"),
                *_numbers("share_low", "share_high", "coverage"),
                *_integers("n_jobs", "n_templates"),
                *_numbers("coverage_median"),
                *_integers("n_below_floor"),
                *_numbers("se_sampling"),
                *_integers("n_empty"),
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "job_group", "gender"),
        ),
        "probe_templates": TableSchema(
            parts=(
                *_BLOCK,
                *_integers("template_id"),
                *_texts("job_group", "gender"),
                *_numbers("share", "coverage"),
                *_integers("n_jobs"),
                *_texts("estimator"),
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "template_id", "job_group", "gender"),
        ),
        "probe_variance": TableSchema(
            parts=(
                *_BLOCK,
                *_texts("job_group", "gender"),
                *_numbers("var_job", "var_template", "var_residual"),
                *_texts("estimator"),
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "job_group", "gender"),
        ),
        "probe_levels": TableSchema(
            parts=(
                *_texts("model", "bias_type", "setting", "prompt_form", "job_group", "gender", "level"),
                *_numbers("share"),
                *_integers("n_instructions"),
                *_texts("estimator"),
                *_END,
            ),
            keys=("model", "bias_type", "setting", "prompt_form", "job_group", "gender", "level"),
        ),
        "probe_next": TableSchema(
            parts=(
                *_BLOCK,
                *_texts("job_group", "token"),
                *_numbers("probability"),
                *_integers("n_cells"),
                *_texts("listed_group"),
                *_integers("rank"),
                *_numbers("probability_high", "beyond"),
                *_integers("n_cells_kept"),
                *_texts("estimator"),
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "job_group", "rank"),
        ),
        "probe_outcomes": TableSchema(
            parts=(
                *_BLOCK,
                *_texts("job_group", "outcome"),
                *_numbers("share", "ci_low", "ci_high"),
                *_integers("n_cells", "n", "n_answers", "n_jobs", "n_templates"),
                *_END,
            ),
            keys=(*_BLOCK_KEYS, "job_group", "outcome"),
        ),
        "tests": TableSchema(
            parts=(
                *_texts("engine", "family", "quantity", "gender", "model_a", "model_b", "bias_type"),
                *_texts("setting", "prompt_form", "instruction_a", "instruction_b", "group_a", "group_b"),
                *_texts("kind", "unit"),
                *_numbers("estimate", "effect_size", "statistic", "dof", "p_value", "p_adjusted"),
                *_numbers("ci_low", "ci_high"),
                *_integers("n_a", "n_b"),
                *_numbers("ci90_low", "ci90_high", "margin"),
                Column("equivalent", "boolean"),
                *_numbers("bound_low", "bound_high"),
                *_texts("verdict"),
                *_END,
            ),
            keys=(
                *("engine", "family", "quantity", "gender", "model_a", "model_b", "bias_type"),
                *("setting", "prompt_form", "instruction_a", "instruction_b", "group_a", "group_b", "kind"),
            ),
        ),
        "associations": TableSchema(
            parts=(
                *_texts(
                    "model", "occupation", "template_id", "origin", "specified_gender", "gender", "rule_id"
                ),
                *_integers("n_female", "n_male", "n_neutral"),
                *_texts("key"),
                _UNDER_INSTRUCTIONS,
            ),
            keys=("model", "key"),
        ),
        "association_validation": TableSchema(
            parts=(
                *_texts("model", "specified_gender"),
                *_integers("n_texts", "n_correct", "n_incorrect", "n_not_captured"),
            ),
            keys=("model", "specified_gender"),
        ),
        "representation": TableSchema(
            parts=(
                *_texts("model", "occupation", "template_id"),
                *_integers("n_texts", "n_female", "n_male", "n_nonbinary", "n_unassociated"),
                *_integers("n_refused", "n_empty", "n_cut"),
                *_numbers("female_share", "ci_low", "ci_high", "se"),
                *_numbers("nonbinary_share", "nonbinary_ci_low", "nonbinary_ci_high"),
                *_numbers("share_if_dropped_female", "share_if_dropped_male", "labour_female_share"),
                *_integers("labour_year"),
                _UNDER_INSTRUCTIONS,
                *_END,
            ),
            keys=("model", "occupation", "template_id", "instruction_id", "setting"),
        ),
        "text_outcomes": TableSchema(
            parts=(
                *_texts("model", "occupation", "template_id", "origin", "specified_gender", "outcome"),
                *_integers("n"),
                *_numbers("share", "ci_low", "ci_high"),
                *_END,
            ),
            keys=("model", "occupation", "template_id", "origin", "specified_gender", "outcome"),
        ),
        "deciles": TableSchema(
            parts=(
                *_texts("model", "template_id", "labour_side"),
                *_numbers("decile_low", "decile_high"),
                *_integers("n_occupations"),
            ),
            keys=("model", "template_id", "labour_side", "decile_low"),
        ),
        "marked_words": TableSchema(
            parts=(
                *_LIST,
                *_integers("rank"),
                *_texts("word"),
                *_numbers("z", "q_value"),
                *_integers("count_target", "count_unmarked", "documents_target", "documents_unmarked"),
                *_booleans("is_pronoun", "is_name", "is_gender_word"),
            ),
            keys=(*_LIST_KEYS, "word"),
        ),
        "word_lists": TableSchema(
            parts=(
                *_LIST,
                *_integers("n_marked"),
                *_numbers("null_mean", "null_p95", "p_value", "p_value_max_z"),
                *_integers("n_target", "n_unmarked", "n_marked_beyond"),
                *_numbers("null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond"),
                *_END,
            ),
            keys=_LIST_KEYS,
        ),
        "group_words": TableSchema(
            parts=(
                *_GROUP,
                *_integers("rank"),
                *_texts("word"),
                *_numbers("z", "q_value"),
                *_integers("count_target", "count_unmarked", "documents_target", "documents_unmarked"),
                *_booleans("is_name", "is_gender_word", "is_group_word"),
            ),
            keys=(*_GROUP_KEYS, "word"),
        ),
        "group_lists": TableSchema(
            parts=(
                *_GROUP,
                *_integers("n_marked"),
                *_numbers("null_p95", "p_value"),
                *_integers("n_marked_beyond"),
                *_numbers("null_p95_beyond", "p_value_beyond"),
                *_integers("n_target", "n_unmarked"),
                *_numbers("null_mean", "p_value_max_z", "p_value_max_z_beyond"),
                *_END,
            ),
            keys=_GROUP_KEYS,
        ),
        "word_overlap": TableSchema(
            parts=_texts("model", "occupation", "gender", "word", "place"),
            keys=("model", "occupation", "gender", "word"),
        ),
        "word_methods": TableSchema(
            parts=_texts("model", "occupation", "origin", "gender", "word", "only_in"),
            keys=("model", "occupation", "origin", "gender", "word"),
        ),
        "instruction_words": TableSchema(
            parts=(
                *_texts("model", "setting", "prompt_form"),
                *_integers("instruction_id"),
                *_texts("marked_for", "method"),
                *_integers("rank"),
                *_texts("word"),
                *_numbers("z", "q_value"),
                *_integers("count_target", "count_unmarked", "documents_target", "documents_unmarked"),
                Column("is_gender_word", "boolean"),
                *_integers("n_marked_beyond"),
                *_numbers("null_p95_beyond", "p_value_beyond", "p_value_max_z_beyond"),
            ),
            keys=("model", "setting", "prompt_form", "instruction_id", "marked_for", "method", "word"),
        ),
        "calibration": TableSchema(
            parts=(
                *_texts("model", "occupation", "prior"),
                *_numbers("c", "alpha"),
                *_texts("gender", "against"),
                *_integers("n_marked", "n_criterion", "n_common", "n_names"),
                *_texts("gained", "lost", "words_differing"),
                *_numbers("stability"),
                *_booleans("recommended"),
                *_integers("n_marked_beyond"),
                *_numbers("stability_low", "stability_high", "stability_shuffled"),
                *_END,
            ),
            keys=("model", "occupation", "prior", "c", "alpha", "gender", "against"),
        ),
        "srb": TableSchema(
            parts=(
                *_texts("model", "occupation", "gender"),
                *_numbers("srb", "distance_female", "distance_male"),
                *_integers("n_candidates", "n_target_female", "n_target_male", "n_oov"),
                *_numbers("overlap_only", "srb_matched", "srb_seed_sd"),
                *_texts("vectors"),
                *_numbers("null_mean", "null_sd", "p_value", "srb_z"),
                *_texts("control"),
                *_numbers("srb_content", "srb_content_p_value"),
                *_END,
            ),
            keys=("model", "occupation", "gender"),
        ),
        "text_transfer": TableSchema(
            parts=(
                *_texts("model", "occupation", "trained_on", "tested_on"),
                *_numbers("auc", "ci_low", "ci_high", "p_value"),
                *_integers("n_female", "n_male"),
                *_END,
            ),
            keys=("model", "occupation", "trained_on", "tested_on"),
        ),
        "srb_change": TableSchema(
            parts=(
                *_texts("model_old", "model_new", "occupation", "gender"),
                *_numbers("srb_old", "srb_new", "percent_change"),
                *_END,
            ),
            keys=("model_old", "model_new", "occupation", "gender"),
        ),
        "gaps": TableSchema(
            parts=(
                *_texts("model", "occupation", "bias_type", "prompt_form"),
                *_numbers("probe_gap", "represented_gap", "labour_gap", "srb_spread"),
                *_texts("vectors"),
                *_END,
            ),
            keys=("model", "occupation", "bias_type", "prompt_form"),
        ),
        "clusters": TableSchema(
            parts=(
                *_texts("model"),
                *_integers("cluster"),
                *_texts("words"),
                *_integers("n_occupations_female", "n_occupations_male"),
                *_numbers("female_share"),
                *_booleans("kept"),
                *_texts("category"),
                *_numbers("p_value", "null_kept"),
                *_END,
            ),
            keys=("model", "cluster"),
        ),
        "silhouette": TableSchema(
            parts=(
                *_integers("k"),
                *_numbers("silhouette"),
                *_booleans("chosen"),
                *_numbers("silhouette_low", "silhouette_high"),
            ),
            keys=("k",),
        ),
    }
)
