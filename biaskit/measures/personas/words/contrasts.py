"""Which words mark texts of some labels against those of others, and how long such lists are by chance.

The labels are genders, or what a user's own column holds; a contrast says whose texts are the target and
against whose a word has to pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from biaskit.common.plain import attributes, group_by
from biaskit.common.wording import joined
from biaskit.measures.personas.texts.names import is_gender_word
from biaskit.measures.personas.words.labelled_texts import Contrast, LabelledTexts, Labels, sum_of
from biaskit.measures.personas.words.log_odds import THRESHOLD, LogOdds, Prior, is_fixed
from biaskit.measures.personas.words.shuffled_scores import Scores, shuffled_scores
from biaskit.measures.personas.words.shuffles import MOST_SHUFFLES, why_unequal
from biaskit.stats.arrays import BoolArray, FloatArray, IntArray
from biaskit.stats.multiplicity import benjamini_hochberg
from biaskit.stats.swaps import reaches


@dataclass(frozen=True, slots=True)
class MarkedWord:
    """A word of the target group whose z lies above 1.96."""

    word: str
    rank: int  # from 1, by z descending, then by word; names and pronouns count
    z: float  # against `all`: the sum over the unmarked groups
    q_value: float  # Benjamini-Hochberg; against `all`: the largest
    count_target: int
    count_unmarked: int
    documents_target: int
    documents_unmarked: int

    def row(self) -> dict[str, Any]:
        """Return its columns, the same in every table of words."""
        return attributes(self, _OF_WORD) | {"is_gender_word": is_gender_word(self.word)}


_OF_WORD = [column.name for column in fields(MarkedWord)]


@dataclass(frozen=True, slots=True)
class WordList:
    """The words that mark one gender, or another target, against another or several, by one method."""

    gender: str  # or whatever the target of the contrast is called
    against: str
    method: str
    n_target: int  # documents
    n_unmarked: int
    words: tuple[MarkedWord, ...] = ()
    n_marked: int | None = None  # None: the list is undefined, the reason says why
    null_mean: float | None = None  # length of the list with shuffled labels
    null_p95: float | None = None
    p_value: float | None = None  # of the length
    p_value_max_z: float | None = None  # of the largest |z| over the words of either group
    n_marked_beyond: int | None = None  # this and the next three: without the words of `left_out`
    null_p95_beyond: float | None = None
    p_value_beyond: float | None = None
    p_value_max_z_beyond: float | None = None
    reason: str | None = None

    @property
    def listed(self) -> list[str]:
        """The words alone."""
        return list(map(attrgetter("word"), self.words))

    @property
    def longer_than_null(self) -> bool | None:
        """Whether more words beyond `left_out` are marked than in 95 % of shuffles; None when undefined."""
        if self.n_marked_beyond is None or self.null_p95_beyond is None:
            return None
        return self.n_marked_beyond > self.null_p95_beyond


# --- the lists -----------------------------------------------------------------------------------


def contrast_lists(
    texts: LabelledTexts,
    contrasts: Sequence[Contrast],
    prior: Prior,
    methods: Sequence[str],
    rng: np.random.Generator,
    n_shuffles: int,
    *,
    shuffled: str = "genders",
) -> list[WordList]:
    """Make the list of each contrast by each method, beside those of the same texts with shuffled labels.

    One set of shuffles within `texts.strata` serves all contrasts and methods; a list that none of them makes
    as long beyond `left_out` gets up to ten times as many. `shuffled` names what was shuffled, in messages.
    See `word_lists` in lists.py for what is undefined.
    """
    log_odds = [LogOdds(is_fixed(texts.words), texts.english, method, prior) for method in methods]
    drafts = [_draft(texts, odds, contrast, shuffled) for contrast in contrasts for odds in log_odds]
    _shuffle(texts, [draft for draft in drafts if draft.observed is not None], rng, n_shuffles)
    floor, n_more = 1 / (1 + n_shuffles), min(9 * (1 + n_shuffles), MOST_SHUFFLES - n_shuffles)
    at_floor = [draft for draft in drafts if (draft.beside_null().p_value_beyond or 1) < 2 * floor]
    _shuffle(texts, at_floor, rng, n_more)
    return [draft.beside_null() for draft in drafts]


def _draft(texts: LabelledTexts, odds: LogOdds, contrast: Contrast, shuffled: str) -> _Draft:
    word_list = WordList(
        gender=contrast.name,
        against=contrast.said_against,
        method=odds.method,
        n_target=_size(texts, contrast.target),
        n_unmarked=_size(texts, contrast.unmarked),
        reason=_why_undefined(texts, odds, contrast),
    )
    if word_list.reason:
        return _Draft(contrast, odds, word_list)
    scores = Scores(odds, texts, list(texts.weighted[:, None]), texts.left_out)  # one row each
    words = tuple(_marked_words(texts, scores, contrast))
    word_list = replace(word_list, words=words, n_marked=len(words))
    observed, no_null = _statistics(scores, contrast), _why_unequal(texts, contrast, shuffled)
    return _Draft(contrast, odds, word_list, observed, no_null)


def _size(texts: LabelledTexts, members: Labels) -> int:
    return int(texts.sizes[list(members)].sum())


def _why_undefined(texts: LabelledTexts, log_odds: LogOdds, contrast: Contrast) -> str | None:
    """Say why a contrast has no list: in one of its pairs texts, words or calibration words are missing."""
    sides = [(contrast.target, contrast.name), *zip(contrast.against, contrast.opponents, strict=True)]
    for members, name in sorted(sides):
        if _size(texts, members) == 0:
            return f"no {name} texts" if texts.weights is None else "no occupation has texts of each"
    for against, name in zip(contrast.against, contrast.opponents, strict=True):
        target, unmarked = (sum_of(texts.weighted, members)[None] for members in (contrast.target, against))
        topic = texts.topic(target, unmarked, (*contrast.target, *against))
        if np.count_nonzero(topic) < 2:
            return f"fewer than two words in the {contrast.name} and {name} texts"
        by_r = log_odds.regularise(target, unmarked, topic).by_r
        of_sides = zip((contrast.name, name), by_r, strict=True)
        if without := [side for side, value in of_sides if np.isnan(value).any()]:
            return f"no calibration word in the {' and '.join(without)} texts"
    return None


def _marked_words(texts: LabelledTexts, scores: Scores, contrast: Contrast) -> Iterator[MarkedWord]:
    from scipy.special import erfc

    of_target, unmarked = contrast.target, contrast.unmarked
    target = sum_of(texts.totals, of_target)
    against = [scores.z(of_target, members)[0] for members in contrast.against]
    total = np.sum(against, axis=0)
    q = np.zeros(total.shape)
    for z, members in zip(against, contrast.against, strict=True):
        # Benjamini-Hochberg on p = 2 Φ(−|z|) over the words that occur in either group.
        occurs = (target + sum_of(texts.totals, members)) > 0
        q_of_pair = np.ones(z.shape)
        q_of_pair[occurs] = benjamini_hochberg(erfc(np.abs(z[occurs]) / np.sqrt(2.0)))
        q = np.maximum(q, q_of_pair)
    marked = np.flatnonzero(_is_marked(against, target))
    # Columns are in alphabetical order, so a stable sort keeps words of equal z in theirs.
    ordered = marked[np.argsort(-total[marked], kind="stable")]
    columns = [total[ordered].tolist(), q[ordered].tolist()]
    for counts in (texts.totals, texts.documents):
        for side in (of_target, unmarked):
            columns.append(sum_of(counts, side)[ordered].astype(np.int64).tolist())
    for rank, (i, *numbers) in enumerate(zip(ordered.tolist(), *columns, strict=True), start=1):
        yield MarkedWord(texts.words[i], rank, *numbers)


# --- statistics of a list, for the texts as they are or for many shuffles at once ----------------------


class _Statistics(NamedTuple):
    length: IntArray  # [R]
    max_z: FloatArray  # [R], the largest |z|; NaN where the list is undefined
    length_beyond: IntArray  # [R], this and the next: without the words left out
    max_z_beyond: FloatArray


def _is_marked(against: Sequence[FloatArray], target: FloatArray) -> BoolArray:
    """Say which words occur in the target's texts and pass against each of the others."""
    marked: BoolArray = target > 0
    for z in against:
        marked &= z > THRESHOLD
    return marked


def _statistics(scores: Scores, contrast: Contrast) -> _Statistics:
    """Compute the length of a contrast's list and the largest |z| over the words of any side, per row."""
    against = [scores.z(contrast.target, members) for members in contrast.against]
    marked = _is_marked(against, scores.counts_of(contrast.target))
    rows, words = np.divmod(np.flatnonzero(marked), marked.shape[1])  # few: counted alone
    length = np.bincount(rows, minlength=len(marked))
    length_beyond = np.bincount(rows[~scores.left_out[words]], minlength=len(marked))
    total = np.abs(against[0] if len(against) == 1 else np.sum(against, axis=0))
    max_z = total.max(axis=1, initial=0.0)
    total[:, np.flatnonzero(scores.left_out)] = 0.0  # faster than to gather all others
    return _Statistics(length, max_z, length_beyond, total.max(axis=1, initial=0.0))


# --- the null ----------------------------------------------------------------------------------------


_NOTHING = _Statistics(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), np.zeros(0))


@dataclass(slots=True)
class _Draft:
    """A list, and the same with shuffled labels."""

    contrast: Contrast
    odds: LogOdds
    word_list: WordList
    observed: _Statistics | None = None  # None: undefined
    no_null: str | None = None  # why its length says nothing beside shuffles
    shuffles: list[_Statistics] = field(default_factory=lambda: [_NOTHING])  # in blocks

    @property
    def least(self) -> float:
        """The smallest |z| of a shuffle that matters: it marks a word or reaches the observed largest."""
        assert self.observed is not None
        largest = min(self.observed.max_z[0], self.observed.max_z_beyond[0])
        return min(THRESHOLD, float(largest) * (1 - 1e-9))

    def beside_null(self) -> WordList:
        """Set the list beside its null; more shuffles than not must be defined."""
        if self.observed is None:
            return self.word_list
        observed, null = self.observed, _Statistics(*map(np.concatenate, zip(*self.shuffles, strict=True)))
        word_list = replace(self.word_list, n_marked_beyond=int(observed.length_beyond[0]))
        defined = ~np.isnan(null.max_z)
        n, n_left_out = int(defined.sum()), int((~defined).sum())
        reason = f"{n_left_out} of {len(defined)} shuffles are undefined and left out" if n_left_out else None
        if n == 0 or n < n_left_out:
            why = f"{reason}: no permutation baseline" if reason else "no shuffles"
            return replace(word_list, reason=why)
        length = null.length[defined]
        p95, p, p_max_z = _beside(length, null.max_z[defined], observed.length, observed.max_z)
        word_list = replace(
            word_list,
            null_mean=float(length.mean()),
            null_p95=p95,
            p_value=p,
            p_value_max_z=p_max_z,
            reason=joined([reason, self.no_null]),
        )
        if self.no_null:
            return word_list
        beyond = null.length_beyond[defined], null.max_z_beyond[defined]
        p95, p, p_max_z = _beside(*beyond, observed.length_beyond, observed.max_z_beyond)
        return replace(word_list, null_p95_beyond=p95, p_value_beyond=p, p_value_max_z_beyond=p_max_z)


def _beside(
    lengths: IntArray, max_z: FloatArray, length: IntArray, observed_z: FloatArray
) -> tuple[float, float, float]:
    """Compute the 95th percentile of n lengths, and p of the observed length and largest |z|, `[1]` each.

    p = (1 + number of shuffles that reach the observed value) / (n + 1).
    """
    reached = np.stack([lengths >= length[0], reaches(max_z, float(observed_z[0]))])
    p, p_max_z = ((1 + reached.sum(axis=1)) / (len(lengths) + 1)).tolist()
    return float(np.percentile(lengths, 95)), p, p_max_z


def _shuffle(texts: LabelledTexts, drafts: Sequence[_Draft], rng: np.random.Generator, n: int) -> None:
    """Add n shuffles of the labels to these lists; no other list hangs on them."""
    if not drafts or n <= 0:
        return
    by_odds = group_by(drafts, lambda draft: id(draft.odds))
    methods, least = [], []
    for of_odds in by_odds.values():
        methods.append(of_odds[0].odds)
        least.append(min(map(attrgetter("least"), of_odds)))
    for scores in shuffled_scores(texts, methods, least, rng, n):
        for draft in by_odds[id(scores.log_odds)]:
            draft.shuffles.append(_statistics(scores, draft.contrast))


def _why_unequal(texts: LabelledTexts, contrast: Contrast, shuffled: str) -> str | None:
    """Say why a list has no null: the texts of its sides differ in length.

    The words of the side with shorter texts weigh less in its prior, so its list grows; shuffled labels level
    the lengths.
    """
    lengths: FloatArray = np.asarray(texts.counts.sum(axis=1), dtype=np.float64).ravel()
    labels, groups = np.array(texts.labels), np.array(texts.groups)
    if texts.weights is not None:
        lengths = lengths * texts.weights[(labels == groups[:, None]).argmax(axis=0), range(len(labels))]

    def among(members: Labels) -> FloatArray:
        return lengths[np.isin(labels, groups[list(members)])]

    for members, name in zip(contrast.against, contrast.opponents, strict=True):
        if why := why_unequal({contrast.name: among(contrast.target), name: among(members)}, shuffled):
            return why
    return None
