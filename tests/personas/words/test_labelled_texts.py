"""Tests of what lists are made of: the part of the vocabulary that some texts have."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from biaskit.measures.personas.words.labelled_texts import labelled_texts


def test_words_are_those_of_the_texts_and_of_texts_elsewhere() -> None:
    counts = csr_matrix(np.array([[1, 0, 0, 2, 0], [0, 0, 3, 0, 0], [0, 5, 0, 0, 0]]))
    given = (counts, ["a", "b", "c", "d", "e"], ["x", "y", "z"], ["p"] * 3, np.arange(5.0), ("x", "y"))
    left_out = np.array([False, False, True, False, False])
    alone = labelled_texts(*given, left_out)
    assert ("a", "c", "d") == alone.words  # the third text has neither label
    assert [[1, 0, 2], [0, 3, 0]] == alone.totals.tolist()
    assert [0.0, 2.0, 3.0] == alone.english.tolist()
    assert not alone.elsewhere.any()
    assert [False, True, False] == alone.left_out.tolist()
    beside = labelled_texts(*given, left_out, elsewhere={"y": np.array([0, 0, 0, 0, 4.0])})
    assert ("a", "c", "d", "e") == beside.words
    assert [[0, 0, 0, 0], [0, 0, 0, 4]] == beside.elsewhere.tolist()
    assert [[1, 0, 2, 0], [0, 3, 0, 0]] == beside.totals.tolist()
