"""An API can change under its name: noticed, said, and only mixed where that was asked for.

See reference/run-folder#drift.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.api_cases import Ask, probe
from fakes.api_server import ApiServer, Behaviour
from fakes.personas_runs import write_vectors

from biaskit.models.api.abilities import Abilities

FOUR = ("--bias-type", "implicit", "--jobs", "nurse,plumber", "--templates", "1-2", "--estimator", "top-k")
EIGHTY = ("--bias-type", "implicit", "--jobs", "1-8", "--templates", "1-10", "--estimator", "top-k")
FEW_TEXTS = ("--per-gender", "2", "--max-samples", "8", "--max-new-tokens", "8", "--batch-size", "1")


@pytest.fixture(autouse=True)
def folder(quick_folder: Path) -> Path:
    """Every test in a folder of its own."""
    return quick_folder


def texts(server: ApiServer, occupations: str) -> tuple[str, ...]:
    cheap = ("--set", "clusters=false", "--set", "permutations=19", "--set", "srb_seeds=1")
    cheap += ("--set", f"vectors={write_vectors(Path('..') / 'vectors.txt')}")
    return ("personas", f"toy=api:toy@{server.url}", "--occupations", occupations, *FEW_TEXTS, *cheap)


# --- another model answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind_name", ["probe", "personas"])
def test_a_resumed_run_stops_at_the_first_answer_of_another_model(
    cli: Ask, kind_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Abilities, "at_once", lambda self, **kind: 8)
    with ApiServer(behaviour=Behaviour(model_name="toy")) as server:
        less = probe(server, *FOUR) if kind_name == "probe" else texts(server, "nurse")
        more = probe(server, *EIGHTY) if kind_name == "probe" else texts(server, "nurse,pilot,cook")
        first = cli(*less)
        assert first.code == 0, first.err
        calls, answered = server.calls, server.answered[200]
        server.behaviour.answers_as = "toy-2025-01"
        stopped = cli(*more)
        assert stopped.code == 3
        assert stopped.content == first.content, "nothing is overwritten, nothing is mixed"
        assert "toy now answers as 'toy-2025-01'; the stored rows are of toy." in stopped.err
        assert "--accept-model-change" in stopped.err
        assert first.names == {"toy": len(first.rows)}
        # What was under way with that answer, and of a busy machine what was sent before it was read.
        assert server.calls - calls <= 2 * 8 + 10
        assert server.answered[200] - answered <= 2 * 8 + 10
        mixed = cli(*more, "--accept-model-change")
        assert mixed.code == 0, mixed.err
        assert mixed.content.startswith(first.content)
        assert {"toy", "toy-2025-01"} == set(mixed.names)
        told = ", ".join(f"{name} ({n} rows)" for name, n in mixed.names.items())
        assert "toy is a mixture of models: its answers (" in mixed.notes
        assert f"are from {told}" in mixed.notes
        # The mixture is in the rows now: both names are known.
        assert cli(*more).code == 0


@pytest.mark.parametrize("kind_name", ["probe", "personas"])
def test_drift_inside_one_run_keeps_what_came_before_it(
    cli: Ask, kind_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Abilities, "at_once", lambda self, **kind: 8)
    with ApiServer(behaviour=Behaviour()) as server:
        asked = probe(server, *EIGHTY) if kind_name == "probe" else texts(server, "nurse,pilot,cook")
        cli(*asked, "--dry-run")
        doctor = server.calls
        server.behaviour.drift_after = 2 * doctor + 21
        stopped = cli(*asked)
        assert stopped.code == 3
        assert "toy now answers as 'toy-2'; the stored rows are of toy." in stopped.err
        assert {"toy"} == set(stopped.names)
        # Every answer that came before the other model's is kept; some of its own may come between.
        assert 21 - 8 <= len(stopped.rows) <= 21
        server.behaviour.drift_after = None
        whole = cli(*asked)
        assert whole.code == 0
        assert whole.content.startswith(stopped.content)
        assert {"toy"} == set(whole.names)
        assert "toy: answered as toy, 20" in whole.notes


def test_a_system_fingerprint_may_change_and_is_counted(cli: Ask) -> None:
    """A service runs several at once: they are no reason to stop, and are shown."""
    with ApiServer(behaviour=Behaviour(system_fingerprint="fp_1")) as server:
        assert cli(*probe(server, *FOUR)).code == 0
        server.behaviour.system_fingerprint = ["fp_1", "fp_2", "fp_3"]
        said = cli(*probe(server, *EIGHTY))
    assert said.code == 0, said.err
    assert {"toy": len(said.rows)} == said.names
    assert {"toy | fp_1", "toy | fp_2", "toy | fp_3"} == {row["answered_by"] for row in said.rows}
    assert "toy: answered as toy, 20" in said.notes
    assert ", 3 system fingerprints" in said.notes


def test_who_answers_for_an_aggregator_is_counted(cli: Ask) -> None:
    """OpenRouter names it in `provider`; providers differ in what they run, which is no reason to stop."""
    with ApiServer(behaviour=Behaviour(provider=["Azure", "Together"], system_fingerprint=None)) as server:
        said = cli(*probe(server, *EIGHTY))
    assert said.code == 0, said.err
    assert {"toy": len(said.rows)} == said.names
    assert {"toy | by Azure", "toy | by Together"} == {row["answered_by"] for row in said.rows}
    assert ", 2 providers (Azure, Together)" in said.notes
    assert "fingerprint" not in said.notes


def test_another_model_of_the_run_goes_on(cli: Ask) -> None:
    with ApiServer() as server, ApiServer() as other:
        models = (f"toy=api:toy@{server.url}", f"two=api:toy@{other.url}")
        assert cli("probe", *models, *FOUR).code == 0
        server.behaviour.answers_as = "another"
        said = cli("probe", *models, *EIGHTY)
    assert said.code == 3
    labels = [row["model"] for row in said.rows]
    assert labels.count("toy") == 4
    assert labels.count("two") >= 80


# --- the same model elsewhere -----------------------------------------------------------------------------


def test_a_name_of_the_endpoint_makes_a_new_port_the_same_model(cli: Ask) -> None:
    with ApiServer() as server:
        first = cli(*probe(server, *FOUR), "--endpoint-name", "mine")
        assert first.code == 0
    with ApiServer() as moved:
        assert moved.port != server.port
        again = cli(*probe(moved, *FOUR), "--endpoint-name", "mine")
        assert again.code == 0
        assert moved.requests == [], "rows and findings are those of the same model"
        assert again.content == first.content
        other = cli(*probe(moved, *FOUR))
        assert other.code == 0
        assert "toy has changed" in other.notes
        assert len(other.rows) == 8
        assert len({row["key"] for row in other.rows}) == 8
