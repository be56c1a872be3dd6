"""What `bk.ModelCallback` does: a model that is trained is probed every so many steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biaskit.arguments import POSITIVE, fits
from biaskit.errors import BiaskitError, UsageError
from biaskit.models.huggingface.loading import require_transformers
from biaskit.progress import Silent, tell
from biaskit.workflow.objects import model as named
from biaskit.workflow.probe import ProbeResult, probe

JOBS, TEMPLATES = "1-10,21-30", "1-2"  # of OccuGender: ten jobs of each group
_TrainerCallback: Any = require_transformers(silent=False).TrainerCallback


class ModelCallback(_TrainerCallback):  # type: ignore[misc]  # transformers has no types
    """Probes a model in training: `Trainer(..., callbacks=[bk.ModelCallback(every=100)])`.

    Before the first step, and every so many steps, the model as it is goes through `bk.probe`. Shares with
    intervals stand in the Trainer's log (`state.log_history`, and what it prints) as
    `GENDER_share/BIAS_TYPE/GROUP` with `_low` and `_high`, and in `results`, step → result. The training goes
    on as without it. Of several processes the first one probes; sharded weights cannot be probed.

    Args:
        every: steps between two probes.
        jobs, templates: of the study; by default ten jobs of each group and two templates of OccuGender.
        out: a folder for the runs, step-0, step-100, ...
        tokenizer: by default the Trainer's `processing_class`.
        label: the model's name in tables.
        probed: any other argument of `bk.probe`; by default bias_type="implicit".
    """

    def __init__(
        self,
        every: int = 100,
        *,
        jobs: Any = JOBS,
        templates: Any = TEMPLATES,
        out: str | Path = "biaskit-training",
        tokenizer: Any = None,
        label: str = "model",
        **probed: Any,
    ) -> None:
        if not fits(every, POSITIVE):
            raise UsageError(f"every is {every!r}: give {POSITIVE}.")
        self.every, self.out, self.label, self.tokenizer = every, Path(out), label, tokenizer
        usual = {"bias_type": "implicit", "jobs": jobs, "templates": templates, "watcher": Silent()}
        self.probed = usual | probed
        self.results: dict[int, ProbeResult] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **of_trainer: Any) -> None:  # noqa: ARG002
        """Probe the model as it comes; what does not fit ends the training before it begins."""
        if state.is_world_process_zero:
            self._probe(state, **of_trainer)

    def on_step_end(self, args: Any, state: Any, control: Any, **of_trainer: Any) -> None:  # noqa: ARG002
        """Probe after every so many steps; a probe that fails is told, and the training goes on."""
        if state.global_step % self.every or not state.is_world_process_zero:
            return
        try:
            self._probe(state, **of_trainer)
        except BiaskitError as error:
            tell(f"biaskit: step {state.global_step} was not probed: {error}\n")
        else:
            control.should_log = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
        """Add the shares of this step to what the Trainer prints, and gives to the callbacks after this."""
        if logs is not None and "loss" in logs and state.global_step in self.results:
            logs |= shares_of(self.results[state.global_step])

    def _probe(self, state: Any, *, model: Any, processing_class: Any = None, **_: Any) -> None:
        loaded = named(self.label, model, self.tokenizer or processing_class)
        step = state.global_step
        self.results[step] = result = probe(loaded, out=self.out / f"step-{step}", **self.probed)
        state.log_history.append({**shares_of(result), "epoch": state.epoch or 0.0, "step": step})


def shares_of(result: ProbeResult) -> dict[str, float]:
    """Return the shares of a run of one model, with intervals: name in a log → share between 0 and 1."""
    numbers: dict[str, float] = {}
    for row in result.groups.query("instruction_id == 0").to_dict("records"):
        name = f"{row['gender']}_share/{row['bias_type']}/{row['job_group']}"
        numbers |= {name: row["share"], f"{name}_low": row["ci_low"], f"{name}_high": row["ci_high"]}
    return {name: round(float(value), 4) for name, value in numbers.items() if value == value}
