"""The part that local scorers and generators share: identity, placement, batches, memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeVar

import psutil
import torch

from biaskit.common.foreign import visible
from biaskit.common.provenance import digest
from biaskit.common.wording import short
from biaskit.errors import ModelError
from biaskit.models.base import answered_now
from biaskit.models.huggingface.adapters import inside
from biaskit.models.huggingface.folder import ModelFolder
from biaskit.models.huggingface.gguf_file import stated_by
from biaskit.models.huggingface.loading import (
    foreign_code,
    free_memory,
    load_config,
    load_model,
    load_tokenizer,
    place,
)
from biaskit.models.huggingface.rendering import Renderer
from biaskit.models.options import LocalOptions
from biaskit.models.token_trie import TokenIds
from biaskit.records import OWN_SYSTEM, THOUGHT_TOKENS, Answered, ModelIdentity, Prompt, PromptFormat

Purpose = Literal["scoring", "generation"]
FORMATS: Mapping[tuple[Purpose, bool], tuple[PromptFormat, ...]] = {
    ("scoring", False): ("raw",),
    ("scoring", True): ("raw", "chat-prefill", "chat-continue"),
    ("generation", False): ("raw", "completion"),
    ("generation", True): ("chat", "raw", "completion"),
}
"""(purpose, whether there is a chat template) → the prompt formats that the model takes, best first."""
LOOK_S = 0.3  # how long to watch the processors, which count in hundredths of a second
R = TypeVar("R")
A = TypeVar("A")


class LocalModel:
    """A checked folder with its tokenizer; a subclass loads the weights."""

    whole_batches = True
    purpose: Purpose

    def __init__(self, folder: ModelFolder, *, label: str, spec: str, local: LocalOptions) -> None:
        self._folder = folder
        with foreign_code(f"{folder.path}: its files do not fit together"):
            self._open(folder, label=label, spec=spec, local=local)

    def _open(self, folder: ModelFolder, *, label: str, spec: str, local: LocalOptions) -> None:
        self._config = load_config(folder)
        self._text_config = self._config.get_text_config(decoder=True)
        self._renderer = Renderer(load_tokenizer(folder), local.template_date, local.thinking)
        thinks, thinking, room = self._renderer.thinks, local.thinking, local.thought_tokens
        if thinking == "on" and not thinks:
            raise ModelError(f"{label}: its template has no thinking switch: leave thinking at auto.")
        formats = FORMATS[self.purpose, self._renderer.has_template]
        if thinks and thinking != "auto":
            left_out = {"raw", "completion"}
            if thinking == "on":
                left_out.add("chat-prefill")  # leaves no place for thoughts
            formats = tuple(prompt_format for prompt_format in formats if prompt_format not in left_out)
        self.placement = place(folder, local.device, local.dtype, purpose=self.purpose)
        # Everything that a number can depend on.
        parts = {"weights": folder.weights_digest, "tokenizer": folder.tokenizer_digest}
        parts["dtype"] = self.placement.dtype
        if self._renderer.reads_clock:
            parts["template_date"] = local.template_date
        if thinks and thinking != "auto":
            parts["thinking"] = thinking
        if thinks and room != THOUGHT_TOKENS:
            parts["thought_tokens"] = str(room)
        parts |= self._deviating_ends()
        details = dict(parts)
        if folder.gguf_file:
            details |= {"file": folder.gguf_file, "file_sha256": folder.weights_digest}
            details |= stated_by(folder.path / folder.gguf_file)
        architectures = getattr(self._config, "architectures", None) or []
        details["architecture"] = ", ".join(architectures) or self._config.model_type
        details["device"] = self.placement.device
        details["revision"] = folder.path.name if folder.path.parent.name == "snapshots" else ""
        if own := self._renderer.own_system:
            details[OWN_SYSTEM] = visible(short(own))
        if folder.unread:
            details["unread"] = folder.unread
        self.identity = ModelIdentity(
            label=label,
            spec=spec,
            fingerprint=digest(parts),
            tuning="instruct" if self._renderer.has_template else "base",
            where="local",
            formats=formats,
            takes_system=self._renderer.takes_system,
            details=details,
        )
        self._model: Any = None
        self._head: Any = None  # OutputHead, if the model's own gives no logits
        self._lent: Any = None  # weights that another one has loaded, unchecked here
        self._usual_threads = 0  # of the process, while the model has other ones
        self._batch_size = local.batch_size or 0  # 0: not resolved yet

    def _deviating_ends(self) -> dict[str, str]:
        """Return the ids that end a text, where generation_config.json or the template adds some."""
        if self.purpose == "scoring":
            return {}
        usual = getattr(self._config, "eos_token_id", None)
        if usual is None:
            usual = getattr(self._text_config, "eos_token_id", None)
        generation = self._folder.generation
        stated = usual if generation is None else generation.get("eos_token_id")
        ends = {*end_ids(stated, self._renderer)}
        expected = {*_listed(usual), *_listed(self._renderer.tokenizer.eos_token_id)}
        return {} if ends == expected else {"ends": ",".join(map(str, sorted(ends)))}

    @property
    def batch_size(self) -> int:
        """Prompts or texts in a batch; 0 until a plan resolved it."""
        return self._batch_size

    def rendered(self, prompt: Prompt) -> str:
        """Render a prompt, through the chat template if its format uses one."""
        return self._renderer.render(prompt)

    def used(self) -> Mapping[str, float | None]:
        """Return nothing: nothing is paid for."""
        return {}

    def _weights(self, ids: TokenIds) -> Any:
        """Load the model, its adapters checked on `ids`; on a CPU, use only as many threads as are idle."""
        if self._lent is not None:
            lent, self._lent = self._lent, None
            return lent
        if self.placement.device == "cpu":
            self._usual_threads = torch.get_num_threads()
            torch.set_num_threads(_spare_threads(self._usual_threads))
        model = load_model(self._folder, self.placement, self._config)
        return inside(model, self.identity.label, ids)

    def _most_positions(self) -> int | None:
        most = getattr(self._text_config, "max_position_embeddings", None)
        return most if isinstance(most, int) and most > 0 else None

    def _affordable(self, numbers_per_width: int, other_bytes: int, largest: int) -> int:
        """Return a batch size: a power of two that fits half of a CPU's free memory; elsewhere the largest.

        One prompt or text takes `numbers_per_width` times the model's width in numbers, and `other_bytes`.
        """
        if self.placement.device.split(":")[0] != "cpu":
            return largest
        number = 4 if self.placement.dtype == "float32" else 2
        width = int(getattr(self._text_config, "hidden_size", 0) or 1024)
        there = (self._model, self._lent, self._folder.loaded) != (None, None, None)
        to_load = 0 if there else self._folder.n_parameters * number
        each = max(1, number * width * numbers_per_width + other_bytes)
        n = max(1, int(0.5 * (free_memory() - to_load)) // each)
        return largest if n >= largest else 1 << (n.bit_length() - 1)

    def _n_layers(self) -> int:
        return int(getattr(self._text_config, "num_hidden_layers", 0) or 12)

    def _in_parts(self, batch: Sequence[R], what: str, answer: Callable[[Sequence[R]], list[A]]) -> list[A]:
        """Answer a batch; if the device runs out of memory, halve this batch and all later ones."""
        answers: list[A] = []
        while len(answers) < len(batch):
            part = batch[len(answers) : len(answers) + max(1, self._batch_size)]
            try:
                with self._forward():
                    answers += answer(part)
            except torch.OutOfMemoryError as error:
                if len(part) == 1:
                    raise ModelError(
                        f"{self.identity.label}: out of memory on {self.placement.device} with one {what}."
                        " Use a smaller dtype, --device map, or a smaller model."
                    ) from error
                self._batch_size = len(part) // 2
                torch.cuda.empty_cache()
        return answers

    def _forward(self) -> AbstractContextManager[None]:
        """Say in one line whatever a model's own forward raises: each architecture fails in its own way."""
        return foreign_code(f"{self.identity.label}: the model's own forward fails")

    def _answered(self, prompt_tokens: int, new_tokens: int) -> Answered:
        by = f"{self.identity.details['architecture']} {self.identity.fingerprint[:12]}"
        return answered_now(by, prompt_tokens, new_tokens)

    def _check_ids(self, used: Collection[int], rows: int) -> None:
        """Refuse ids beyond the embedding, which would read memory that is not the model's."""
        if used and max(used) >= rows:
            raise ModelError(
                f"{self.identity.label}: its tokenizer gives the id {max(used)}, but its weights have {rows}"
                " tokens: tokenizer and weights do not match."
            )

    def close(self) -> None:
        """Free the weights."""
        self._model = self._lent = self._head = None
        if self._usual_threads:
            torch.set_num_threads(self._usual_threads)
            self._usual_threads = 0
        torch.cuda.empty_cache()


def _spare_threads(usual: int) -> int:
    """Return as many threads as there are idle processors, at most the usual number."""
    if usual == 1 or os.environ.get("OMP_NUM_THREADS"):
        return usual
    # Threads of one sum wait for each other: two beside one busy process, on two processors, took many times
    # as long as one thread.
    process = psutil.Process()
    busy: list[float] = psutil.cpu_percent(LOOK_S, percpu=True)
    allowed = process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(len(busy))
    return max(1, usual - round(sum(busy[i] for i in allowed if i < len(busy)) / 100))


def end_ids(stated: Any, renderer: Renderer) -> list[int]:
    """Return the ids that end a text: those stated, the tokenizer's, and what ends a turn in the template."""
    ends = (*_listed(stated), *_listed(renderer.tokenizer.eos_token_id), *renderer.turn_ends())
    return list(dict.fromkeys(ends))


def _listed(ids: Any) -> list[int]:
    """List ids that a configuration gives as one, several or none."""
    several = ids if isinstance(ids, list | tuple) else [ids]
    return [int(i) for i in several if i is not None]
