"""The logic of benchmarks/gpu.py, on the CPU: its table, its checks, and what it says without a GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from needs import require_torch

require_torch()

import torch  # noqa: E402

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.fixture(scope="module")
def gpu() -> Any:
    spec = importlib.util.spec_from_file_location("gpu_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


SMALL = ("--device", "cpu", "--jobs", "nurse,plumber", "--templates", "1-2", "--texts", "8", "--tokens", "6")


def test_without_a_gpu_it_says_so_and_leaves_with_2(gpu: Any, capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: run benchmarks/gpu.py itself")
    assert 2 == gpu.main([])
    assert "There is no CUDA device that torch sees: nothing was checked.\n" == capsys.readouterr().out


def test_every_check_passes_on_the_cpu(
    gpu: Any, tiny: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == gpu.main([*SMALL, "--model", str(tiny("llama", "bpe").folder)])
    lines = capsys.readouterr().out.splitlines()
    checks = [line for line in lines if line.endswith("| yes |")]
    assert ["float32 beside", "float32, batches", "bfloat16 beside", "bfloat16, batches"] == [
        " ".join(line.split()[1:3]) for line in checks[:4]
    ]
    assert "batch 8 → 1" in checks[4]
    assert "8 of 8" in checks[5]
    assert any("vLLM | not installed" in line for line in lines)


def test_a_device_that_is_wrong_is_found_out(
    gpu: Any, tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = gpu.scored

    def wrong(kind: Any, model: str, local: Any, asked: Any, **how: Any) -> Any:
        values, size = whole(kind, model, local, asked, **how)
        moved = 0.01 if local.dtype == "float32" and local.batch_size == 1 else 0.0
        return {key: value + moved for key, value in values.items()}, size

    monkeypatch.setattr(gpu, "scored", wrong)
    assert 1 == gpu.main([*SMALL, "--model", str(tiny("llama", "bpe").folder)])
    assert 2 == capsys.readouterr().out.count("| NO |")
