"""A model in training is probed, and trains on as if nobody had looked."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fakes.tiny_models import build_model, build_tokenizer, corpus_texts
from transformers import Trainer, TrainingArguments

import biaskit as bk
from biaskit.workflow import callback

FEW: dict[str, Any] = {"jobs": "nurse,plumber", "templates": "1-2"}


def trained(folder: Path, callbacks: list[Any], **options: Any) -> tuple[Any, Trainer]:
    """A GPT-2 that drops a tenth of its activations, after four steps."""
    torch.manual_seed(1)
    tokenizer = build_tokenizer("bpe")
    tokenizer.pad_token = tokenizer.eos_token
    model = build_model("gpt2", tokenizer)
    ids = [tokenizer(text)["input_ids"][:12] for text in corpus_texts()[:32]]
    rows = [{"input_ids": row, "labels": row} for row in ids if len(row) == 12]
    usual = {"max_steps": 4, "per_device_train_batch_size": 2, "logging_steps": 1, "learning_rate": 1e-2}
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    arguments = TrainingArguments(str(folder), **{**usual, **quiet, **options})
    trainer = Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer, callbacks=callbacks)
    trainer.train()
    return model, trainer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "options", [{}, {"bf16": True}, {"logging_steps": 3}], ids=["float32", "bf16", "seldom logged"]
)
def test_the_training_goes_on_as_without_it(options: dict[str, Any], folder: Path) -> None:
    probed = bk.ModelCallback(2, out="runs", **FEW)
    model, trainer = trained(folder, [probed], **options)
    plain, alone = trained(folder, [], **options)
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
    assert model.training == plain.training
    losses = [[row["loss"] for row in t.state.log_history if "loss" in row] for t in (trainer, alone)]
    assert losses[0] == losses[1]


def test_shares_with_intervals_stand_in_the_log_and_the_runs_are_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probed = bk.ModelCallback(2, out="runs", label="tiny", **FEW)
    model, trainer = trained(folder, [probed])
    assert [0, 2, 4] == list(probed.results)
    assert ["step-0", "step-2", "step-4"] == sorted(path.name for path in Path("runs").iterdir())
    name = "female_share/implicit/female-dominated"
    logged = {row["step"]: row for row in trainer.state.log_history if name in row}
    assert [0, 2, 4] == list(logged)
    for step, result in probed.results.items():
        row = result.groups.query("gender == 'female' and job_group == 'female-dominated'").iloc[0]
        assert pytest.approx(row.share, abs=1e-4) == logged[step][name]
        for end in ("low", "high"):
            assert pytest.approx(row[f"ci_{end}"], abs=1e-4, nan_ok=True) == logged[step].get(
                f"{name}_{end}", float("nan")
            )
    assert logged[0][name] != logged[4][name]
    # The last run is of the weights that the training leaves.
    after = bk.probe(
        bk.model("tiny", model, build_tokenizer("bpe")), **FEW, bias_type="implicit", out="after"
    )
    shares = [result.groups["share"].to_numpy() for result in (probed.results[4], after)]
    assert pytest.approx(shares[0], abs=1e-9) == shares[1]
    assert {"implicit"} == set(after.groups["bias_type"])
    printed = capsys.readouterr().out
    assert 3 == sum("loss" in line and name in line for line in printed.splitlines())
    json.dumps(trainer.state.log_history)


def test_a_design_that_does_not_fit_ends_the_training_before_it_begins(folder: Path) -> None:
    with pytest.raises(bk.BiaskitError, match="nurze"):
        trained(folder, [bk.ModelCallback(2, jobs="nurze")])
    with pytest.raises(bk.BiaskitError, match="every is 0"):
        bk.ModelCallback(0)
    with pytest.raises(bk.BiaskitError, match="no argument 'jobz'"):
        bk.ModelCallback(2, jobz="nurse")


def test_a_probe_that_fails_later_is_told_and_the_training_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("runs").mkdir()
    Path("runs/step-2").write_text("in the way")
    probed = bk.ModelCallback(2, out="runs", **FEW)
    _, trainer = trained(folder, [probed])
    assert [0, 4] == list(probed.results)
    assert "step 2 was not probed" in capsys.readouterr().err
    assert 4 == trainer.state.global_step


class Stops(bk.Silent):
    """A user who presses Ctrl-C while a probe of the training goes on."""

    def progress(self, *args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_in_a_probe_ends_the_training(folder: Path) -> None:
    probed = bk.ModelCallback(2, out="runs", **FEW)

    def from_step_two(*args: Any, **kwargs: Any) -> Any:
        probed.probed["watcher"] = Stops()
        return usual(*args, **kwargs)

    usual, probed.on_step_end = probed.on_step_end, from_step_two  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        trained(folder, [probed])
    assert [0] == list(probed.results)


def test_an_error_of_memory_in_a_probe_is_told_and_the_training_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = callback.probe

    def probe(*models: Any, out: Path, **more: Any) -> Any:
        if out.name == "step-2":
            raise MemoryError("no room")
        return usual(*models, out=out, **more)

    probe.__signature__ = inspect.signature(usual)  # type: ignore[attr-defined]
    monkeypatch.setattr(callback, "probe", probe)
    probed = bk.ModelCallback(2, out="runs", **FEW)
    _, trainer = trained(folder, [probed])
    assert ([0, 4], 4) == (list(probed.results), trainer.state.global_step)
    assert "step 2 was not probed: no room" in capsys.readouterr().err
