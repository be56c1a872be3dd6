"""`inspect eval biaskit/occugender`: known answers give known counts, and the log becomes a run."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

import biaskit as bk
from biaskit.probe.design import resolve_design
from biaskit.study.config import load_probe_study
from biaskit.workflow.logged import import_log

pytestmark = pytest.mark.slow  # importing inspect_ai takes seconds

SMALL: dict[str, Any] = {"jobs": "1-2,21-22", "templates": [1, 2], "bias_type": "implicit"}
SAID = ("She", " *He* was", "They,", "Hers", "It")
"""What a draw says, by its seed: one of women, one of men, one of neither, two of none that is listed."""
OWN = ("female", "male", "diverse", None, None)


def answered(say: Callable[[Any], Any], folder: Path, **options: Any) -> Any:
    """The log of the task, asked of Inspect's own mock model."""
    from inspect_ai import eval as evaluate
    from inspect_ai.model import get_model

    from biaskit.inspect_tasks import occugender

    def reply(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        return say(config)

    model = get_model("mockllm/model", custom_outputs=reply)
    task = occugender(**{**SMALL, **options})
    with warnings.catch_warnings():
        # Inspect leaves streams to the garbage collector, which tells of them in whatever test comes next.
        warnings.simplefilter("ignore", ResourceWarning)
        [log] = evaluate(task, model=model, log_dir=str(folder), display="none")
        gc.collect()
    assert "success" == log.status, log.error
    return log


def text(said: str, stop_reason: Any = "stop", logprobs: Any = None) -> Any:
    from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelOutput, ModelUsage

    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(content=said), stop_reason=stop_reason, logprobs=logprobs
    )
    # Without its usage the mock model would fetch a tokenizer.
    usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)
    return ModelOutput(model="mockllm/model", choices=[choice], usage=usage)


def metrics(log: Any) -> dict[str, float]:
    return {name: one.value for score in log.results.scores for name, one in score.metrics.items()}


def test_draws_are_counted_scored_and_imported(tmp_path: Path) -> None:
    seeds: list[int] = []

    def say(config: Any) -> Any:
        assert (1.0, 1.0) == (config.temperature, config.top_p)
        seeds.append(config.seed)
        return text(SAID[config.seed % 5])

    log = answered(say, tmp_path / "logs", draws=6, max_draws_per_cell=12)
    assert len(seeds) == len(set(seeds))
    said = [OWN[seed % 5] for seed in seeds]
    result = import_log(tmp_path / "new", Path(log.location), watcher=bk.Silent())
    cells = result.table("probe_cells")
    assert 8 == len(cells)
    draws = [len(row["answers"]) for row in stored(tmp_path / "new")]
    assert len(seeds) == sum(draws)
    counted: dict[str, int] = dict.fromkeys(("female", "male", "diverse"), 0)
    for row in stored(tmp_path / "new"):
        for expression, n in row["counts"].items():
            group = next(e["group"] for e in row["expressions"] if e["text"] == expression)
            counted[group] += n
    assert {group: said.count(group) for group in counted} == counted
    # Inspect's own results are the rows of the imported tables.
    shown = metrics(log)
    for row in result.table("probe_groups").to_dict("records"):
        where = f"{row['gender']} share in {row['job_group']}"
        assert row["share"] == shown[where]
        assert row["ci_low"] == shown[f"{where}, 95 % from"]
        assert row["ci_high"] == shown[f"{where}, 95 % to"]


def stored(run: Path) -> list[dict[str, Any]]:
    import json

    return [json.loads(line) for line in (run / "probe.jsonl").read_text("ascii").splitlines()]


def test_an_imported_run_compares_and_reports(tmp_path: Path) -> None:
    runs = []
    for name, said in (("a", "She"), ("b", "He")):
        log = answered(lambda config, said=said: text(said), tmp_path / f"logs-{name}", draws=3)
        runs.append(import_log(tmp_path / name, Path(log.location), watcher=bk.Silent()).path)
    shares = [bk.load(run, watcher=bk.Silent()).table("probe_groups") for run in runs]
    for table, women in zip(shares, (1.0, 0.0), strict=True):
        assert {women} == set(table[table["gender"] == "female"]["share"])
    assert len(bk.compare(*runs, out=tmp_path / "c").tests)
    assert bk.report(runs[0], watcher=bk.Silent()).page.is_file()


def test_a_text_that_was_cut_or_filtered_says_nothing(tmp_path: Path) -> None:
    # "She" that was cut may go on to a longer word, and a filtered text says no expression.
    ends = ("max_tokens", "content_filter", "unknown")
    log = answered(
        lambda config: text("She", ends[config.seed % 3]), tmp_path / "logs", draws=4, max_draws_per_cell=4
    )
    import_log(tmp_path / "new", Path(log.location), watcher=bk.Silent())
    assert all(not any(row["counts"].values()) for row in stored(tmp_path / "new"))
    assert 0.0 == max(value for name, value in metrics(log).items() if name.startswith("coverage"))


def test_lists_of_tokens_are_bounds(tmp_path: Path) -> None:
    import math

    from inspect_ai.model import Logprob, Logprobs, TopLogprob

    told = {"She": 0.5, "He": 0.2, "The": 0.1}
    listed = [TopLogprob(token=token, logprob=math.log(p)) for token, p in told.items()]
    first = Logprobs(content=[Logprob(token="She", logprob=math.log(0.5), top_logprobs=listed)])
    log = answered(lambda config: text("She", "max_tokens", first), tmp_path / "logs", estimator="top-k")
    cells = import_log(tmp_path / "new", Path(log.location), watcher=bk.Silent()).table("probe_cells")
    assert {"top-k"} == set(cells["estimator"])
    assert cells["female_share"].to_numpy() == pytest.approx(0.5 / 0.7)
    assert (cells["female_share_low"] < 0.5 / 0.7).all()
    assert (cells["female_share_high"] > 0.5 / 0.7).all()


def test_what_may_be_a_secret_is_in_no_entry() -> None:
    from inspect_ai.model import get_model

    from biaskit.exchange.inspect_asking import InspectModel

    secrets = dict.fromkeys(("api_key", "hf_token", "PASSWORD", "client_secret", "apikey", "auth"), "s3cret")
    model = get_model("mockllm/model", **secrets, tokenizer_path="here", device="cpu")
    entry = InspectModel(model, resolve_design(load_probe_study("occugender", {}))).entry
    assert "s3cret" not in json.dumps(entry)
    assert {"tokenizer_path": "here", "device": "cpu"} == json.loads(entry["details"]["args"])


def test_a_provider_without_lists_says_so(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="use -T estimator=sampling"):
        answered(lambda config: text("She"), tmp_path / "logs", estimator="top-k")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"estimator": "exact"}, "sampling or top-k"),
        ({"prompt_form": "chat-prefill"}, "not chat-prefill"),
        ({"jobs": "no such job"}, "no such job"),
    ],
)
def test_what_inspect_cannot_ask_is_one_line(asked: dict[str, Any], said: str) -> None:
    from biaskit.inspect_tasks import occugender

    with pytest.raises(bk.BiaskitError, match=said) as told:
        occugender(**asked)
    assert "\n" not in str(told.value)


@pytest.mark.process
def test_the_command_finds_the_task_by_its_entry_point(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [(name, module)] = project["entry-points"]["inspect_ai"].items()
    # An entry point is read from an installed package's metadata: the checkout's own may be older.
    info = tmp_path / "path" / "biaskit_of_this_test-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: biaskit-of-this-test\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[inspect_ai]\n{name} = {module}\n")
    code = (
        "import sys; from inspect_ai.model._providers.mockllm import MockLLM;"
        "from inspect_ai.model import ModelUsage;"
        "MockLLM.default_output = 'She'; none = ModelUsage();\n"
        "async def usage(self, output, *_): output.usage = none\n"
        "MockLLM._ensure_default_usage = usage\n"
        "from inspect_ai._cli.main import main; main()"
    )
    model = ["--model", "mockllm/model", "--log-dir", str(tmp_path / "logs"), "--display", "plain"]
    asked = ["-T", "jobs=1,21", "-T", "templates=1", "-T", "bias_type=implicit", "-T", "draws=3"]
    ended = subprocess.run(
        [sys.executable, "-c", code, "eval", "biaskit/occugender", *model, *asked],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path / "path")])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == ended.returncode, ended.stdout + ended.stderr
    [log] = (tmp_path / "logs").glob("*.eval")
    table = import_log(tmp_path / "new", log, watcher=bk.Silent()).table("probe_groups")
    assert {1.0} == set(table[table["gender"] == "female"]["share"])
