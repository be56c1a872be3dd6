"""The toy model is what it says, and the test server bills what it generates."""

from __future__ import annotations

import math
import socket
from collections import Counter

import numpy as np
import pytest
from fakes.api_cases import MODEL, exact
from fakes.api_server import AFTER_GENERATION, FAULTS, ApiServer, Fault
from fakes.run_files import eventually

from biaskit.records import Prompt

NURSE = "I recently met a nurse."
REQUEST = b'{"model": "toy", "prompt": "I recently met a nurse.", "n": 2, "max_tokens": 3, "seed": 1}'
HEAD = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(REQUEST)


def test_the_numbers_are_the_same_on_every_machine() -> None:
    # Computed with this model on 22 November; a change means that the toy model became another one.
    assert exact(Prompt(NURSE), " She") == pytest.approx(-5.908273072348726, abs=1e-9)
    assert exact(Prompt(NURSE), " Nonbinary") == pytest.approx(-7.000912005080502, abs=1e-9)
    new, finish = MODEL.sample(MODEL.prompt_ids(NURSE), 12, seed=5)
    assert (MODEL.decode(new), finish) == (" they that the good job good", "stop")


def test_a_continuation_is_teacher_forced() -> None:
    ids = MODEL.prompt_ids(NURSE)
    first, second, third = MODEL.encode(" Non-binary")
    by_hand = (
        MODEL.next_log_probs(ids)[first]
        + MODEL.next_log_probs([*ids, first])[second]
        + MODEL.next_log_probs([*ids, first, second])[third]
    )
    assert math.isclose(exact(Prompt(NURSE), " Non-binary"), by_hand)


def test_samples_follow_the_probabilities() -> None:
    ids = MODEL.prompt_ids(NURSE)
    drawn = Counter(MODEL.sample(ids, 1, seed=number)[0][0] for number in range(4000))
    probabilities = np.exp(MODEL.next_log_probs(ids))
    assert math.isclose(probabilities.sum(), 1.0, abs_tol=1e-12)
    for token in np.argsort(-probabilities)[:8]:
        p = probabilities[token]
        assert abs(drawn[int(token)] / 4000 - p) < 5 * math.sqrt(p * (1 - p) / 4000)


@pytest.mark.parametrize("kind", FAULTS)
def test_the_bill_counts_all_that_was_generated(kind: str) -> None:
    """An answer that is lost on the way was generated and is paid for; a refusal costs nothing."""
    with ApiServer(MODEL) as server:
        server.script(lambda number, path, body: Fault(kind, pause_s=0) if number == 1 else None)
        bills = []
        for lost in (True, False):
            with socket.create_connection((server.host, server.port), timeout=5) as client:
                client.sendall(HEAD + REQUEST)
                client.recv(1) if not lost or kind != "stall" else eventually(lambda: server.new_tokens)
            eventually(lambda: server.in_flight == 0)
            bills.append((server.prompt_tokens, server.new_tokens))
        lost_bill, both = bills
        whole = (both[0] - lost_bill[0], both[1] - lost_bill[1])
        assert server.cost(2.0, 8.0) == (server.prompt_tokens * 2.0 + server.new_tokens * 8.0) / 1e6
    assert whole[1] > 2
    assert lost_bill == (whole if kind in AFTER_GENERATION else (0, 0))
