"""What the command of a kind and its Python function do; most kinds have a typed function of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.measurement import Measurement
from biaskit.report.result import RunResult
from biaskit.runs.objects import lending
from biaskit.runs.start import OF_RUNS, overrides_of, run_study
from biaskit.study.config import load_as


def function_of(kind: Measurement) -> Callable[..., RunResult]:
    """Find the Python function of a kind: that of its name in command.py, else one made of its keys."""
    own: Callable[..., RunResult] | None = getattr(kind.file("command"), kind.name, None)
    return own or _made_of_keys(kind)


def _made_of_keys(kind: Measurement) -> Callable[..., RunResult]:
    study_class, names = kind.study, list(kind.study.flags())
    of_keys = type("Keys", (), {"__annotations__": dict.fromkeys(names, Any), "__doc__": ""})

    @lending
    @checked(of_keys, *OF_RUNS)
    def measure(
        *models: Any, study: str = kind.standard, out: str | Path | None = None, **options: Any
    ) -> RunResult:
        overrides = overrides_of(study_class, study, {name: options.pop(name, None) for name in names})
        loaded = load_as(study_class, study, {**overrides, **(options.get("settings") or {})})
        result: RunResult = run_study(kind.resolve(loaded), models, out, options)  # type: ignore[arg-type]
        return result

    measure.__name__ = measure.__qualname__ = kind.name
    measure.__doc__ = kind.help
    return measure
