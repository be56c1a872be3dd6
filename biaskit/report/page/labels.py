"""What the page calls things: titles of tables, names of columns, values, rules, in words for a reader."""

from __future__ import annotations

from collections.abc import Mapping

from biaskit.report.questions import QuestionId
from biaskit.wording import PEOPLE

ENGINES: Mapping[str, str] = {
    "probe": "Probe: probabilities of gendered words",
    "personas": "Personas: generated texts",
}

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

_AS_THEY_ARE = (
    *("model_b", "occupation", "gender", "engine", "group_a", "group_b", "statistic", "n_a", "n_b"),
    *("method", "rank", "word", "marked_for", "cluster", "words", "silhouette", "chosen", "prior"),
    *("alpha", "gained", "lost", "stability", "recommended", "question", "text"),
)
COLUMNS: Mapping[str, tuple[str, str]] = {
    **{name: (name.replace("_", " "), "") for name in _AS_THEY_ARE},
    "model": ("model", "the model's label"),
    "model_a": ("model a", "the estimate is a minus b"),
    "model_old": ("older model", ""),
    "model_new": ("newer model", ""),
    "bias_type": ("asked", "explicit: the gender is asked for; implicit: a pronoun is awaited"),
    "instruction_id": ("instruction", "0 is none"),
    "instruction_a": ("instruction a", "number or level; 0 is none"),
    "instruction_b": ("instruction b", "number or level; 0 is none"),
    "setting": ("setting", "plain, or after a dialogue"),
    "prompt_form": ("prompt form", "how the prompt was put to the model"),
    "estimator": ("estimator", "how the probability was obtained"),
    "template_id": ("template", "all: the mean of the templates"),
    "job": ("occupation", "or another item of the study"),
    "job_group": ("group", "by the share of women in labour statistics"),
    "labour_female_share": ("labour share of women", "U.S. labour statistics"),
    "labour_year": ("year", "of the labour statistics"),
    "labour_side": ("most workers are", "by U.S. labour statistics"),
    "ci_low": ("95 % from", "lower end of the 95 % interval"),
    "ci_high": ("95 % to", "upper end of the 95 % interval"),
    "ci90_low": ("90 % from", "lower end of the 90 % interval, for equivalence"),
    "ci90_high": ("90 % to", "upper end of the 90 % interval, for equivalence"),
    "token": ("token", "text of a next token, in quotation marks"),
    "probability": ("probability", "mean over the cells; 0 where the token is not among those kept"),
    "probability_high": ("at most", "the same with the most that it can be in those cells"),
    "beyond": ("beyond", "of the probability, what is no listed word"),
    "n_cells_kept": ("cells that keep tokens", "of these, n cells have this one"),
    "n_cells": ("cells", "how many cells the number rests on"),
    "listed_group": ("begins", "groups of the listed words that begin with the token"),
    "group": ("group", "a value of your column"),
    "n_answers": ("answers", "texts drawn"),
    "coverage": ("coverage", "probability on the listed words, mean over cells"),
    "coverage_median": ("median coverage", "probability on the listed words, median over cells"),
    "n_below_floor": ("cells under the floor", "cells whose coverage is below the study's floor"),
    "n_templates": ("templates", "how many templates the number rests on"),
    "n_jobs": ("occupations", "how many occupations the number rests on"),
    "n_instructions": ("instructions", "how many instructions the number rests on"),
    "difference_low": ("difference at least", "lower bound of an interval estimator"),
    "difference_high": ("difference at most", "upper bound of an interval estimator"),
    "specified_gender": ("asked for", "gender in the prompt"),
    "share": ("share", "of the probability on the listed words"),
    "pooled_share": ("pooled share", "summed masses over summed coverages, a check"),
    "se_templates": ("± over templates", "standard error over the template means, as the paper prints"),
    "se_sampling": ("± of sampling", "standard error from the number of draws"),
    "share_low": ("share at least", "mean of the lower bounds of an interval estimator"),
    "share_high": ("share at most", "mean of the upper bounds of an interval estimator"),
    "var_job": ("occupations", "variance component of occupations"),
    "var_template": ("templates", "variance component of templates"),
    "var_residual": ("the rest", "residual variance component"),
    "level": ("level", "strength of the instruction"),
    "family": ("family", "tests that Holm's adjustment takes together"),
    "quantity": ("quantity", "what is compared; y~x: y over x"),
    "kind": ("test", "the kind of test or estimate"),
    "unit": ("unit", "what is counted once"),
    "estimate": ("estimate", "a minus b, or the slope or correlation"),
    "effect_size": ("effect size", "Hedges' g, d_z or rank-biserial correlation, by test"),
    "dof": ("degrees of freedom", ""),
    "p_value": ("p", "p-value, unadjusted"),
    "p_adjusted": ("p (Holm)", "adjusted within the family"),
    "margin": ("margin", "of equivalence"),
    "equivalent": ("equivalent", "yes: the 90 % interval lies inside ±margin"),
    "bound_low": ("bound from", "least that the exact difference can be, where an estimator gives bounds"),
    "bound_high": ("bound to", "most that the exact difference can be, where an estimator gives bounds"),
    "verdict": ("verdict", "what the numbers come to, counted among all comparisons of the page"),
    "n_texts": ("texts", ""),
    "n_correct": ("correct", "the text says the gender asked for"),
    "n_incorrect": ("incorrect", "the text says another gender"),
    "n_not_captured": ("not captured", "the text says none by the rules"),
    "n_female": ("about women", "texts"),
    "n_male": ("about men", "texts"),
    "n_nonbinary": ("about non-binary people", "texts"),
    "n_unassociated": ("no gender", "texts in no share"),
    "n_refused": ("refused", "texts refused or filtered"),
    "n_empty": ("empty", "texts; of the prober: cells in which nothing was listed or no draw matched"),
    "n_cut": ("cut", "texts that reached the token limit"),
    "female_share": ("share of women", ""),
    "se": ("standard error", ""),
    "nonbinary_share": ("share of non-binary people", ""),
    "nonbinary_ci_low": ("non-binary, 95 % from", ""),
    "nonbinary_ci_high": ("non-binary, 95 % to", ""),
    "share_if_dropped_female": ("share at most", "if all texts without a gender were about women"),
    "share_if_dropped_male": ("share at least", "if all texts without a gender were about men"),
    "decile_low": ("share from", "lower end of the tenth"),
    "decile_high": ("share to", "upper end of the tenth"),
    "n_occupations": ("occupations", "how many"),
    "origin": ("gender in the prompt?", "whether the prompt named the gender"),
    "against": ("against", "the gender whose texts are compared"),
    "z": ("z", "weighted log-odds of the word over their standard deviation"),
    "q_value": ("q", "Benjamini-Hochberg"),
    "count_target": ("uses", "by the gender's texts"),
    "count_unmarked": ("uses by the others", "by the texts compared with"),
    "documents_target": ("texts", "of the gender that hold the word"),
    "documents_unmarked": ("texts of the others", "that hold the word"),
    "is_pronoun": ("pronoun", ""),
    "is_name": ("name", ""),
    "is_group_word": ("names a group", "a word of a group's own name"),
    "column": ("column", "of your texts, that holds the groups"),
    "is_gender_word": ("gender word", "names a gender by itself (docs/methods.md#gender-words)"),
    "n_marked": ("words", "length of the list"),
    "n_marked_beyond": ("words beyond", "length of the list without gender words and names"),
    "null_p95_beyond": ("null 95 %, beyond", "95th percentile under shuffled gender labels"),
    "p_value_beyond": ("p, beyond", "of the length, without gender words and names"),
    "p_value_max_z_beyond": ("p (largest z), beyond", "without gender words and names"),
    "stability_low": ("stability, 95 % from", ""),
    "stability_high": ("stability, 95 % to", ""),
    "stability_shuffled": ("stability, shuffled", "under shuffled gender labels"),
    "outcome": ("outcome", "declines: refused or filtered; the others but empty: by their words"),
    "n": ("texts", "with this outcome"),
    "null_mean": ("null mean", "mean under shuffled gender labels"),
    "null_p95": ("null 95 %", "95th percentile under shuffled gender labels"),
    "null_sd": ("null SD", "standard deviation under shuffled gender labels"),
    "p_value_max_z": ("p (largest z)", "of the largest z, under shuffled gender labels"),
    "n_target": ("texts", "of the gender"),
    "n_unmarked": ("texts of the others", ""),
    "place": ("stands in", "which lists hold the word"),
    "only_in": ("only in", "the method that marks the word"),
    "srb": ("SRB", "negative: closer to women asked for"),
    "srb_content": ("SRB of content", "without gender words on both sides"),
    "srb_content_p_value": ("p of content", "against shuffled genders"),
    "srb_old": ("SRB, older", ""),
    "srb_new": ("SRB, newer", ""),
    "percent_change": ("change, %", "a rise: nearer to one's own gender asked for"),
    "distance_female": ("distance to women", "asked for"),
    "distance_male": ("distance to men", "asked for"),
    "n_candidates": ("words", "of the list that is scored"),
    "n_target_female": ("target words, women", ""),
    "n_target_male": ("target words, men", ""),
    "n_oov": ("without vector", "words left out"),
    "overlap_only": ("overlap only", "score from shared words alone"),
    "srb_matched": ("SRB, equal lengths", "both target lists cut to the shorter one"),
    "srb_seed_sd": ("SD over seeds", "of the word vectors"),
    "vectors": ("vectors", "SRB is comparable within one vector model only"),
    "srb_z": ("SRB, z", "against the null; comparable across vector models"),
    "auc": ("area under the curve", "0.5: as well as by a coin; 1: always"),
    "trained_on": ("learnt from", "texts whose gender is, or is not, in the prompt"),
    "tested_on": ("tested in", "texts whose gender is, or is not, in the prompt"),
    "control": ("control", "hold-out: texts of one origin, as a positive control"),
    "probe_gap": ("probe gap", "share of women minus share of men"),
    "represented_gap": ("gap in texts", "share of women minus share of men"),
    "labour_gap": ("labour gap", "twice the labour share of women minus one"),
    "srb_spread": ("SRB spread", "the men's score minus the women's"),
    "n_occupations_female": ("women's lists", "occupations whose list of women holds a word"),
    "n_occupations_male": ("men's lists", "occupations whose list of men holds a word"),
    "kept": ("kept", "by the rule of docs/methods.md#keep-rule"),
    "null_kept": ("kept by chance", "share of 199 swaps of women's and men's lists in which the rule holds"),
    "silhouette_low": ("least", "over five starts, of the best three k"),
    "silhouette_high": ("most", "over five starts, of the best three k"),
    "category": ("category", "given by the user"),
    "k": ("clusters", ""),
    "c": ("C", ""),
    "n_criterion": ("criterion", ""),
    "n_common": ("common", ""),
    "n_names": ("names", ""),
    "words_differing": ("differing", ""),
    "reason": ("reason", "why a number is not measured, or what it rests on"),
    # columns of a study's questions, where the page shows them as asked
    "id": ("number", ""),
    "opening": ("answer opens with", ""),
    "unspecified": ("gender not in the prompt", ""),
    "specified": ("gender in the prompt", ""),
}

SUFFIXES: tuple[tuple[str, str, str], ...] = (
    ("_share_ci_low", "{group}, 95 % from", "lower end of the 95 % interval of the share"),
    ("_share_ci_high", "{group}, 95 % to", "upper end of the 95 % interval of the share"),
    ("_share", "share of {group}", "of the probability on the listed words (coverage)"),
)
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


def column(header: str, groups: tuple[str, ...], contrast: tuple[str, str]) -> tuple[str, str]:
    """Label and explanation of a table's column; one that nobody described is its own label."""
    if header in COLUMNS:
        return COLUMNS[header]
    if any(contrast) and header == f"{contrast[0]}_minus_{contrast[1]}":
        return f"{PEOPLE.get(contrast[0], contrast[0])} minus {PEOPLE.get(contrast[1], contrast[1])}", (
            "difference of the shares"
        )
    for suffix, label, explained in SUFFIXES:
        group = header.removesuffix(suffix)
        if group != header and group in groups:
            return label.format(group=PEOPLE.get(group, group)), explained
    return header.replace("_", " "), ""
