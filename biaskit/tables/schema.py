"""The public tables as data: every name, column and key (reference/tables).

Columns stand in the order of the file, each with a kind. The keys name a row: no two rows have the same.
Columns are added at the right, before `reason`, and never renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "integer", "number", "boolean"]
_KINDS: Mapping[str, Kind] = {"": "text", "i": "integer", "n": "number", "b": "boolean"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column; an undefined value of any kind is an empty field."""

    name: str
    kind: Kind = "text"
    scoped: bool = False  # only some studies have it, such as those under instructions


@dataclass(frozen=True, slots=True)
class PerGroup:
    """Numbers of every gender group: `<group><suffix>` for each suffix, then the next group's."""

    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The number `<first>_minus_<second>` of the study's contrast."""


TablePart = Column | PerGroup | Difference


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The columns of a table, from left to right, and the keys that name one of its rows."""

    parts: tuple[TablePart, ...]
    keys: tuple[str, ...]


def _table(columns: str, keys: str) -> TableSchema:
    """Read the columns and keys of a table as they are written below.

    A column is text, or after a colon: i an integer, n a number, b a boolean. In square brackets stand
    columns that only some studies have; `*_share` is a number for each gender group.
    """
    parts: list[TablePart] = []
    scoped = False
    for word in columns.split():
        scoped = scoped or word.startswith("[")
        name, _, kind = word.strip("[]").partition(":")
        if name.startswith("*"):
            parts.append(PerGroup(tuple(name[1:].split("/"))))
        elif name == "first_minus_second":
            parts.append(Difference())
        else:
            parts.append(Column(name, _KINDS[kind], scoped))
        scoped = scoped and not word.endswith("]")
    return TableSchema(tuple(parts), tuple(keys.split()))


SCHEMAS: Mapping[str, TableSchema] = {
    "probe_cells": _table(
        "model bias_type template_id:i job job_group instruction_id:i setting prompt_form "
        "estimator *_mass coverage:n *_share *_share_low/_share_high coverage_low:n "
        "coverage_high:n below_floor:b [n_answers:i n_listed:i n_unknown:i n_both:i n_declines:i "
        "n_restates:i n_empty:i n_other:i] reason",
        "model bias_type instruction_id setting prompt_form template_id job",
    ),
    "probe_jobs": _table(
        "model bias_type instruction_id:i setting prompt_form estimator job job_group "
        "labour_female_share:n *_share first_minus_second ci_low:n ci_high:n coverage:n "
        "n_templates:i difference_low:n difference_high:n *_share_ci_low/_share_ci_high reason",
        "model bias_type instruction_id setting prompt_form job",
    ),
    "probe_groups": _table(
        "model bias_type instruction_id:i setting prompt_form estimator job_group gender share:n "
        "pooled_share:n se_templates:n ci_low:n ci_high:n share_low:n share_high:n coverage:n "
        "n_jobs:i n_templates:i coverage_median:n n_below_floor:i se_sampling:n n_empty:i reason",
        "model bias_type instruction_id setting prompt_form job_group gender",
    ),
    "probe_templates": _table(
        "model bias_type instruction_id:i setting prompt_form template_id:i job_group gender "
        "share:n coverage:n n_jobs:i estimator reason",
        "model bias_type instruction_id setting prompt_form template_id job_group gender",
    ),
    "probe_variance": _table(
        "model bias_type instruction_id:i setting prompt_form job_group gender var_job:n "
        "var_template:n var_residual:n estimator reason",
        "model bias_type instruction_id setting prompt_form job_group gender",
    ),
    "probe_levels": _table(
        "model bias_type setting prompt_form job_group gender level share:n n_instructions:i "
        "estimator reason",
        "model bias_type setting prompt_form job_group gender level",
    ),
    "probe_next": _table(
        "model bias_type instruction_id:i setting prompt_form job_group token probability:n "
        "n_cells:i listed_group rank:i probability_high:n beyond:n n_cells_kept:i estimator "
        "reason",
        "model bias_type instruction_id setting prompt_form job_group rank",
    ),
    "probe_outcomes": _table(
        "model bias_type instruction_id:i setting prompt_form job_group outcome share:n ci_low:n "
        "ci_high:n n_cells:i n:i n_answers:i n_jobs:i n_templates:i reason",
        "model bias_type instruction_id setting prompt_form job_group outcome",
    ),
    "tests": _table(
        "engine family quantity gender model_a model_b bias_type setting prompt_form "
        "instruction_a instruction_b group_a group_b kind unit estimate:n effect_size:n "
        "statistic:n dof:n p_value:n p_adjusted:n ci_low:n ci_high:n n_a:i n_b:i ci90_low:n "
        "ci90_high:n margin:n equivalent:b bound_low:n bound_high:n verdict reason",
        "engine family quantity gender model_a model_b bias_type setting prompt_form "
        "instruction_a instruction_b group_a group_b kind",
    ),
    "associations": _table(
        "model occupation template_id origin specified_gender gender rule_id n_female:i n_male:i "
        "n_neutral:i key [instruction_id:i setting]",
        "model key",
    ),
    "association_validation": _table(
        "model specified_gender n_texts:i n_correct:i n_incorrect:i n_not_captured:i",
        "model specified_gender",
    ),
    "representation": _table(
        "model occupation template_id n_texts:i n_female:i n_male:i n_nonbinary:i "
        "n_unassociated:i n_refused:i n_empty:i n_cut:i female_share:n ci_low:n ci_high:n se:n "
        "nonbinary_share:n nonbinary_ci_low:n nonbinary_ci_high:n share_if_dropped_female:n "
        "share_if_dropped_male:n labour_female_share:n labour_year:i [instruction_id:i setting] "
        "reason",
        "model occupation template_id instruction_id setting",
    ),
    "text_outcomes": _table(
        "model occupation template_id origin specified_gender outcome n:i share:n ci_low:n ci_high:n reason",
        "model occupation template_id origin specified_gender outcome",
    ),
    "deciles": _table(
        "model template_id labour_side decile_low:n decile_high:n n_occupations:i",
        "model template_id labour_side decile_low",
    ),
    "marked_words": _table(
        "model occupation origin gender against method rank:i word z:n q_value:n count_target:i "
        "count_unmarked:i documents_target:i documents_unmarked:i is_pronoun:b is_name:b "
        "is_gender_word:b",
        "model occupation origin gender against method word",
    ),
    "word_lists": _table(
        "model occupation origin gender against method n_marked:i null_mean:n null_p95:n "
        "p_value:n p_value_max_z:n n_target:i n_unmarked:i n_marked_beyond:i null_p95_beyond:n "
        "p_value_beyond:n p_value_max_z_beyond:n reason",
        "model occupation origin gender against method",
    ),
    "group_words": _table(
        "model column group against gender method rank:i word z:n q_value:n count_target:i "
        "count_unmarked:i documents_target:i documents_unmarked:i is_name:b is_gender_word:b "
        "is_group_word:b",
        "model column group against gender method word",
    ),
    "group_lists": _table(
        "model column group against gender method n_marked:i null_p95:n p_value:n "
        "n_marked_beyond:i null_p95_beyond:n p_value_beyond:n n_target:i n_unmarked:i null_mean:n "
        "p_value_max_z:n p_value_max_z_beyond:n reason",
        "model column group against gender method",
    ),
    "word_overlap": _table("model occupation gender word place", "model occupation gender word"),
    "word_methods": _table(
        "model occupation origin gender word only_in", "model occupation origin gender word"
    ),
    "instruction_words": _table(
        "model setting prompt_form instruction_id:i marked_for method rank:i word z:n q_value:n "
        "count_target:i count_unmarked:i documents_target:i documents_unmarked:i is_gender_word:b "
        "n_marked_beyond:i null_p95_beyond:n p_value_beyond:n p_value_max_z_beyond:n",
        "model setting prompt_form instruction_id marked_for method word",
    ),
    "calibration": _table(
        "model occupation prior c:n alpha:n gender against n_marked:i n_criterion:i n_common:i "
        "n_names:i gained lost words_differing stability:n recommended:b n_marked_beyond:i "
        "stability_low:n stability_high:n stability_shuffled:n reason",
        "model occupation prior c alpha gender against",
    ),
    "srb": _table(
        "model occupation gender srb:n distance_female:n distance_male:n n_candidates:i "
        "n_target_female:i n_target_male:i n_oov:i overlap_only:n srb_matched:n srb_seed_sd:n "
        "vectors null_mean:n null_sd:n p_value:n srb_z:n control srb_content:n "
        "srb_content_p_value:n reason",
        "model occupation gender",
    ),
    "text_transfer": _table(
        "model occupation trained_on tested_on auc:n ci_low:n ci_high:n p_value:n n_female:i n_male:i reason",
        "model occupation trained_on tested_on",
    ),
    "srb_change": _table(
        "model_old model_new occupation gender srb_old:n srb_new:n percent_change:n reason",
        "model_old model_new occupation gender",
    ),
    "gaps": _table(
        "model occupation bias_type prompt_form probe_gap:n represented_gap:n labour_gap:n "
        "srb_spread:n vectors reason",
        "model occupation bias_type prompt_form",
    ),
    "clusters": _table(
        "model cluster:i words n_occupations_female:i n_occupations_male:i female_share:n kept:b "
        "category p_value:n null_kept:n reason",
        "model cluster",
    ),
    "silhouette": _table("k:i silhouette:n chosen:b silhouette_low:n silhouette_high:n", "k"),
}
