"""What `bk.ModelCallback` does: a model that is trained is probed every so many steps."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from biaskit.arguments import POSITIVE, fits
from biaskit.errors import Interrupted, UsageError
from biaskit.measures.probe.command import ProbeArguments, ProbeResult, probe
from biaskit.models.api.endpoint import reason_of
from biaskit.models.huggingface.loading import require_transformers
from biaskit.progress import Silent, tell
from biaskit.runs.objects import model as named

_USUAL = {"bias_type": "implicit", "jobs": "1-10,21-30", "templates": "1-2"}
_TrainerCallback: Any = require_transformers(silent=False).TrainerCallback


class ModelCallback(_TrainerCallback):  # type: ignore[misc]  # transformers has no types
    """Probes a model in training: `Trainer(..., callbacks=[bk.ModelCallback(every=100)])`.

    Before the first step, and every so many steps, `bk.probe` measures the model as it is. Shares with
    intervals stand in the Trainer's log (`state.log_history`, and what it next prints) as
    `GENDER_share/BIAS_TYPE/GROUP` with `_low` and `_high`, beside them `coverage/…` and `n_prompts/…`, and
    in `results`, step → result. The training goes on as without it. Of several processes the first one
    probes; sharded weights cannot be probed.

    Args:
        every: steps between two probes. out: a folder for the runs, step-0, step-100, ...
        label: the model's name in tables.
        probed: other arguments of `bk.probe`; by default jobs="1-10,21-30" (ten of each group of OccuGender),
            templates="1-2", bias_type="implicit", and the Trainer's `processing_class` as tokenizer.
    """

    def __init__(self, every: int = 100, out: Any = "trained", label: str = "model", **probed: Any) -> None:
        if not fits(every, POSITIVE):
            raise UsageError(f"every is {every!r}: give {POSITIVE}.")
        self.every, self.out, self.label = every, Path(out), label
        self.tokenizer = probed.pop("tokenizer", None)
        self.probed = {"watcher": Silent(), **_USUAL, **probed}
        known = {*inspect.signature(probe).parameters, *ProbeArguments.__annotations__} - {
            "models",
            "options",
        }
        if foreign := set(probed) - known:
            raise UsageError(f"bk.probe takes no argument {sorted(foreign)[0]!r}.")
        self.results: dict[int, ProbeResult] = {}
        self._unlogged: dict[str, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **of_trainer: Any) -> None:  # noqa: ARG002
        """Probe the model as it comes; what does not fit ends the training before it begins."""
        if state.is_world_process_zero:
            self._probe(state, **of_trainer)

    def on_step_end(self, args: Any, state: Any, control: Any, **of_trainer: Any) -> None:  # noqa: ARG002
        """Probe after every so many steps; a probe that fails is told, and the training goes on."""
        if state.global_step % self.every == 0 and state.is_world_process_zero:
            try:
                self._probe(state, **of_trainer)
            except Interrupted:
                raise KeyboardInterrupt from None
            except Exception as error:  # also of memory, or of a full disk
                tell(f"biaskit: step {state.global_step} was not probed: {reason_of(error)}\n")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
        """Add the newest shares to what the Trainer prints, and gives to the callbacks after this."""
        if logs is not None and "loss" in logs:
            logs |= self._unlogged
            self._unlogged = {}

    def _probe(self, state: Any, *, model: Any, processing_class: Any = None, **_: Any) -> None:
        loaded, step = named(self.label, model, self.tokenizer or processing_class), state.global_step
        self.results[step] = result = probe(loaded, out=self.out / f"step-{step}", **self.probed)
        self._unlogged = shares_of(result)
        state.log_history.append({**self._unlogged, "epoch": state.epoch or 0.0, "step": step})


def shares_of(result: ProbeResult) -> dict[str, float]:
    """Return shares (0 to 1) of a run of one model, intervals, coverage and prompts behind them, by name."""
    numbers: dict[str, float] = {}
    for row in result.groups.query("debiasing_id == 0").to_dict("records"):
        beside = f"{row['bias_type']}/{row['job_group']}"
        name = f"{row['gender']}_share/{beside}"
        numbers |= {name: row["share"], f"{name}_low": row["ci_low"], f"{name}_high": row["ci_high"]}
        n = row["n_jobs"] * row["n_templates"]
        numbers |= {f"coverage/{beside}": row["coverage"], f"n_prompts/{beside}": n}
        if row["binary_share"] == row["binary_share"]:  # else NaN: the contrast's first group alone has it
            name = f"binary_share/{beside}"
            ends = {"": "binary_share", "_low": "binary_share_ci_low", "_high": "binary_share_ci_high"}
            numbers |= {f"{name}{end}": row[column] for end, column in ends.items()}
    return {name: round(float(value), 4) for name, value in numbers.items() if value == value}
