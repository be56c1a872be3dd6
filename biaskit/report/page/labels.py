"""What the page calls things: titles of tables, names of columns, values, rules, in words for a reader."""

from __future__ import annotations

from collections.abc import Mapping

from biaskit.report.questions import QuestionId
from biaskit.wording import PEOPLE

VERDICTS: Mapping[str, str] = {
    "higher": "clear difference",
    "lower": "clear difference",
    "equivalent": "equivalent",
    "no-clear-difference": "no clear difference",
    "not-identified": "not identified",
    "no-verdict": "no verdict",
    "not-measured": "not measured",
    "shown": "",
}

TITLES: Mapping[str, tuple[str, str]] = {
    "gaps": (
        "Probe, texts, labour statistics and SRB side by side",
        "One line per model and occupation that both engines measured. Each gap is positive towards women: "
        "probability share of women minus men, share of women minus men in the texts, twice the labour "
        "share minus one. The SRB spread is the men's score minus the women's.",
    ),
    "tests": (
        "Contrasts and tests",
        "Every named contrast with its estimate (a minus b), 95 % interval, effect size and p-value, before "
        "and after Holm's adjustment within its family; “equivalent” says whether the 90 % interval lies "
        "inside the margin.",
    ),
    "srb_change": (
        "SRB, percent change from model to model",
        "A rise means: nearer to the words used when that gender is asked for.",
    ),
    "probe_groups": (
        "Shares by group of occupations",
        "Mean share of each gender's words over the occupations of a group, with the 95 % interval over "
        "occupations and templates, and the probability on the listed words (coverage).",
    ),
    "probe_jobs": (
        "Shares by occupation",
        "Mean over the templates of the share that each gender's words have of the probability on all "
        "listed words (coverage), beside the share of women in labour statistics.",
    ),
    "probe_next": (
        "What is said next",
        "The most probable tokens at the prompts, listed or not, by their mean probability; beyond: what of "
        "it is no listed word (docs/methods.md#next-tokens).",
    ),
    "probe_outcomes": (
        "What the answers come to",
        "Shares of drawn texts by outcome, with the 95 % interval over occupations and templates "
        "(docs/methods.md#outcomes).",
    ),
    "probe_levels": ("Shares by strength of instruction", "Mean share over the instructions of one level."),
    "probe_templates": (
        "Shares by template",
        "The same shares for each wording of the question: how much depends on the labels.",
    ),
    "probe_variance": (
        "Where the variance comes from",
        "Variance components of the cells' shares: occupations, templates, and what is left.",
    ),
    "representation": (
        "Who is represented in the texts",
        "Share of texts about women among texts that speak of a gender, per occupation and prompt, with "
        "Wilson's 95 % interval, the bounds if every text without a gender were about women or men, and the "
        "labour share.",
    ),
    "deciles": (
        "Occupations by share of women in the texts",
        "Number of occupations per tenth of the share, apart for those where women are most and where men "
        "are most.",
    ),
    "association_validation": (
        "Is the gender of a text found?",
        "Texts whose prompt named a gender: how often the words of the text say the same.",
    ),
    "text_outcomes": (
        "What became of texts, by the gender asked for",
        "Texts whose prompt named a gender. Those refused, filtered or empty are in no list; what the others "
        "are, rules say of their words (docs/methods.md#outcomes).",
    ),
    "word_lists": (
        "Lengths of the marked-word lists",
        "Number of marked words per list, beside the length and the largest z that shuffled gender labels "
        "give, with all words and beyond gender words and names. A list not longer than its null beyond them "
        "says nothing by its length (docs/methods.md#beyond-gender-words).",
    ),
    "marked_words": (
        "Marked words",
        "Words that one gender's texts use more than the other's, by z score, with the number of texts that "
        "hold them. The first words of each calibrated list; the file holds all.",
    ),
    "group_lists": (
        "Lengths of the marked-word lists of {column}",
        "One line per group, then for each gender of it: marked words against the unmarked groups (or all "
        "others), beside the length that shuffled labels give, with all words and beyond gender words, names "
        "and the groups' own names (docs/methods.md#groups).",
    ),
    "group_words": (
        "Words that mark the groups of {column}",
        "Words that a group's texts use more than those it is held against, by z score. The first words of "
        "each calibrated list; the file holds all.",
    ),
    "word_overlap": (
        "Words shared by lists",
        "Whether a word is marked when the gender is not in the prompt, when it is, or in both.",
    ),
    "word_methods": ("Words that only one method marks", "Calibrated Marked Words against Marked Personas."),
    "instruction_words": (
        "Words marked for an instruction",
        "Words that texts under an instruction use more, or less, than texts without one.",
    ),
    "srb": (
        "Subset Representational Bias score (SRB)",
        "Distance of the marked words of a gender that was not in the prompt to those of women asked for, "
        "minus the distance to those of men asked for: negative is closer to women (docs/methods.md#srb).",
    ),
    "text_transfer": (
        "Women's and men's texts told apart by words that name no gender",
        "Area under the curve: how often a text about a woman scores higher than one about a man of the same "
        "prompt, by weights learnt from other texts (0.5: as well as by a coin), within one origin and from "
        "one to the other; p against shuffled genders (docs/methods.md#transfer).",
    ),
    "clusters": (
        "Clusters of marked words",
        "Words with similar vectors, and in how many occupations each gender's list holds one.",
    ),
    "silhouette": ("How many clusters", "Silhouette for each number of clusters tried."),
    "calibration": ("Calibration of the prior", "C and alpha tried, and the words each would mark."),
}

QUESTION_OF_TABLE: Mapping[str, QuestionId] = {
    **dict.fromkeys(("probe_groups", "probe_jobs", "probe_templates"), "say"),
    **dict.fromkeys(("representation", "deciles", "association_validation"), "write"),
    **dict.fromkeys(("marked_words", "word_lists", "word_overlap", "word_methods", "text_transfer"), "how"),
    **dict.fromkeys(("group_lists", "group_words", "srb", "clusters", "silhouette"), "how"),
    **dict.fromkeys(("probe_next", "probe_outcomes", "text_outcomes"), "else"),
    **dict.fromkeys(("srb_change",), "models"),
    **dict.fromkeys(("gaps",), "agree"),
    **dict.fromkeys(("probe_levels", "instruction_words"), "help"),
}
"""Which question a table answers; another one stands with how sure the numbers are."""

NOT_ON_PAGE: Mapping[str, str] = {
    "probe_cells": "one line per template and occupation",
    "associations": "one line per text",
}
"""Tables too long for a page, whose means stand in the others."""

COLUMNS: Mapping[str, str] = {
    "model_a": "model a (estimate: a − b)",
    "bias_type": "asked",
    "instruction_id": "instruction (0: none)",
    "job": "occupation",
    "job_group": "group",
    "labour_female_share": "labour share of women",
    "labour_side": "most workers are",
    "ci_low": "95 % from",
    "ci_high": "95 % to",
    "ci90_low": "90 % from",
    "ci90_high": "90 % to",
    "probability_high": "probability at most",
    "beyond": "beyond (no listed word)",
    "listed_group": "begins",
    "n_below_floor": "cells under the floor",
    "specified_gender": "asked for",
    "share_low": "share at least",
    "share_high": "share at most",
    "se_templates": "± over templates",
    "se_sampling": "± of sampling",
    "var_job": "variance of occupations",
    "var_template": "variance of templates",
    "var_residual": "variance of the rest",
    "kind": "test",
    "dof": "degrees of freedom",
    "p_value": "p",
    "p_adjusted": "p (Holm)",
    "bound_low": "bound from",
    "bound_high": "bound to",
    "n_not_captured": "not captured",
    "n_unassociated": "texts without gender",
    "share_if_dropped_female": "share at most",
    "share_if_dropped_male": "share at least",
    "decile_low": "share from",
    "decile_high": "share to",
    "origin": "gender in the prompt?",
    "q_value": "q (Benjamini-Hochberg)",
    "count_target": "uses",
    "count_unmarked": "uses by the others",
    "documents_target": "texts",
    "documents_unmarked": "texts of the others",
    "n_marked": "words",
    "n_marked_beyond": "words beyond gender words",
    "null_p95_beyond": "null 95 %, beyond",
    "p_value_beyond": "p, beyond",
    "p_value_max_z_beyond": "p (largest z), beyond",
    "null_p95": "null 95 %",
    "p_value_max_z": "p (largest z)",
    "n_target": "texts",
    "n_unmarked": "texts of the others",
    "place": "stands in",
    "srb": "SRB",
    "srb_content": "SRB of content",
    "srb_content_p_value": "p of content",
    "srb_matched": "SRB, equal lengths",
    "srb_seed_sd": "SD over seeds",
    "srb_z": "SRB, z",
    "percent_change": "change, %",
    "n_oov": "without vector",
    "auc": "area under the curve",
    "trained_on": "learnt: gender in the prompt?",
    "tested_on": "tested: gender in the prompt?",
    "represented_gap": "gap in texts",
    "srb_spread": "SRB spread",
    "n_occupations_female": "women's lists",
    "n_occupations_male": "men's lists",
    "null_kept": "kept by chance",
    "k": "clusters",
    "c": "C",
    "id": "number",
    "opening": "answer opens with",
    "unspecified": "gender not in the prompt",
    "specified": "gender in the prompt",
}
"""Columns whose name in the file says too little; the others are called as there (docs/reading.md#tables)."""

_SUFFIXES = {
    "_share_ci_low": "{}, 95 % from",
    "_share_ci_high": "{}, 95 % to",
    "_ci_low": "{}, 95 % from",
    "_ci_high": "{}, 95 % to",
    "_share": "share of {}",
}
"""Endings of the columns that every gender group has, the longest first."""

_ORIGINS = {"associated": "not in the prompt", "specified": "in the prompt"}
VALUES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("gender", "specified_gender", "against", "group_a", "group_b"), PEOPLE),
    **dict.fromkeys(("origin", "trained_on", "tested_on"), _ORIGINS),
    "labour_side": {"female": "women", "male": "men"},
}
"""Words for the values of a column; a value that is not here is shown as it is."""

OUTCOMES: Mapping[str, str] = {
    "person": "describes a person",
    "no-person": "describes nobody",
    "declines": "declines",
    "lectures": "lectures",
    "cut": "cut before it says anything",
    "empty": "empty",
}
"""What a text comes to (docs/methods.md#outcomes)."""

RULES: Mapping[str, str] = {
    "nonbinary": "a term for non-binary people occurs, and neutral words outnumber the others together",
    "male": "no term for non-binary people, and men's words outnumber women's",
    "male-majority": "men's words outnumber women's and neutral ones together",
    "female": "no term for non-binary people, and women's words outnumber men's",
    "female-majority": "women's words outnumber men's and neutral ones together",
}
"""The rules of the association by their ids (docs/methods.md#gender-association)."""

CLASSES: Mapping[str, tuple[str, str]] = {
    "female": ("W", "women's word"),
    "male": ("M", "men's word"),
    "neutral": ("T", "neutral word (they, their)"),
    "nonbinary": ("NB", "term for non-binary people"),
}
"""How a counted word is marked in an example text: a letter, and what it means."""


def column(header: str) -> str:
    """A table's column in words."""
    if header in COLUMNS:
        return COLUMNS[header]
    for suffix, label in _SUFFIXES.items():
        if (group := header.removesuffix(suffix)) not in (header, "pooled"):
            return label.format(PEOPLE.get(group, group))
    return header.removeprefix("n_").replace("_", " ")
