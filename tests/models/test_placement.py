"""Which dtype `auto` is: for the probe, for texts, on a CPU that computes in 16 bits and on others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from fakes.tiny_models import Tiny

from biaskit.models.huggingface import loading
from biaskit.models.huggingface.folder import ModelFolder, check_folder
from biaskit.models.huggingface.loading import place

NAMES = {"x86": ("avx512_bf16", "avx512_fp16", "avx2"), "arm": ("bf16", "fp16_arith", "sve")}


@pytest.fixture(params=["bfloat16", "float16"])
def folder(saved_models: Callable[..., Tiny], request: pytest.FixtureRequest) -> ModelFolder:
    return replace(check_folder(saved_models("llama", "bpe").folder), stored_dtype=request.param)


def machine(monkeypatch: pytest.MonkeyPatch, kind: str, *, has: bool) -> None:
    short, half, other = NAMES[kind]
    found = {"architecture": "a bf16 fp16 machine", "l1d_cache_size": 16, short: has, half: has, other: True}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)


@pytest.mark.parametrize("kind", NAMES)
def test_texts_are_in_the_models_own_type_where_the_processor_computes_in_it(
    folder: ModelFolder, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, kind, has=True)
    assert folder.stored_dtype == place(folder, "cpu", "auto", purpose="generation").dtype
    machine(monkeypatch, kind, has=False)
    assert "float32" == place(folder, "cpu", "auto", purpose="generation").dtype
    assert folder.stored_dtype == place(folder, "cpu", folder.stored_dtype, purpose="generation").dtype


def test_where_float32_does_not_fit_it_is_bfloat16_all_the_same(
    folder: ModelFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, "x86", has=False)
    large = replace(folder, n_parameters=1_000_000_000)
    monkeypatch.setattr(loading, "free_memory", lambda: 3_000_000_000)
    assert "bfloat16" == place(large, "cpu", "auto", purpose="generation").dtype


@pytest.mark.parametrize("has", [True, False])
def test_the_probe_takes_float32_on_any_processor(
    folder: ModelFolder, has: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, "x86", has=has)
    assert "float32" == place(folder, "cpu", "auto").dtype
