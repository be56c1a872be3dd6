"""Word vectors of a sentence encoder in a folder, `sentence:PATH` (methods/srb#sentence-vectors)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biaskit.common.inputs import expanded
from biaskit.common.sequences import cut
from biaskit.errors import ModelError
from biaskit.models.huggingface.folder import SIDECAR, ModelFolder, check_folder
from biaskit.models.huggingface.loading import load_tokenizer, load_weights, place, require_transformers

VOCABULARY_FILES = (
    *("tokenizer.json", "vocab.txt", "vocab.json"),
    *("tokenizer.model", "spiece.model", "sentencepiece.bpe.model"),
)
POSITIONS_SET_ASIDE = 2  # RoBERTa and its kin count positions from 2
POOLER = "pooler."  # BERT's layer over the first token: the mean never passes through it
MEAN_POOLING = frozenset({"Transformer", "Pooling", "Normalize"})
"""Steps of a sentence-transformers folder that biaskit does too."""


def encode_words(path: str | Path, words: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float64]:
    """Return unit vectors `(n, d)` of words: means of the encoder's last hidden states over their tokens.

    Special tokens that the tokenizer adds are in the mean, as in sentence-transformers. Computed in
    float32 on one thread, so that the bytes do not depend on the number of threads.
    Missing or empty input: a row of NaN for a word without a known token.
    Errors: ModelError if the folder is not a whole safetensors encoder with its tokenizer;
        MissingExtraError if torch or transformers is not installed.
    Reference: methods/srb#sentence-vectors (GAS(P) C.3.1 takes BAAI/bge-m3); checked against a padded
    batch with its mask.
    """
    require_transformers()
    import torch

    folder = _encoder_folder(expanded(path))
    tokenizer = load_tokenizer(folder)
    place(folder, "cpu", "float32")  # refuses what does not fit in memory
    # Many encoders are saved without the pooler, which is not used here.
    model = load_weights("AutoModel", folder, "float32", what="encoder", optional=POOLER)
    if not hasattr(model.config, "hidden_size"):
        raise ModelError(f"{folder.path} ({model.config.model_type}) is not a text-only encoder.")
    ids = _token_ids(tokenizer, model, words, folder)
    vectors = np.full((len(words), model.config.hidden_size), np.nan)
    with_tokens = sorted((i for i in range(len(ids)) if ids[i]), key=lambda i: len(ids[i]))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        # Words of equally many tokens go together, so that no vector includes padding.
        for _, alike in groupby(with_tokens, key=lambda i: len(ids[i])):
            for batch in map(list, cut(list(alike), batch_size)):
                tokens = torch.tensor([ids[i] for i in batch])
                with torch.inference_mode():
                    hidden = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
                vectors[batch] = hidden.double().mean(dim=1).numpy()
    finally:
        torch.set_num_threads(threads)
    with np.errstate(invalid="ignore"):  # zero by zero is NaN: no direction either
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def pooling_note(path: str | Path) -> str | None:
    """Return a note on the steps of a sentence-transformers folder beyond a mean, which are left out."""
    folder = expanded(path)
    left_out: list[str] = []
    try:
        steps = SIDECAR.json(folder / "modules.json")
        for step in steps:
            kind = str(step["type"]).rpartition(".")[2]
            if kind not in MEAN_POOLING:
                left_out.append(kind)
            if kind == "Pooling":
                config = SIDECAR.json(folder / step["path"] / "config.json")
                chosen = {key: how for key, how in config.items() if key.startswith("pooling_mode") and how}
                chosen.pop("pooling_mode_mean_tokens", None)
                left_out += [key for key, how in chosen.items() if how != "mean"]
    except (ModelError, TypeError, KeyError, AttributeError):
        return None
    what = ", ".join(left_out)
    note = f"{folder} was trained with {what}; here a word's vector is the mean over its tokens"
    return note if what else None


def _encoder_folder(path: Path) -> ModelFolder:
    """Check the folder of an encoder. Raises `ModelError`."""
    if not path.is_dir():
        raise ModelError(f"sentence:{path}: no such folder. Give the folder of a saved sentence encoder.")
    folder = check_folder(path)
    # Without its files transformers makes up an empty tokenizer, and every word is the same unknown token.
    if not any((path / name).is_file() for name in VOCABULARY_FILES):
        raise ModelError(
            f"{path} has no tokenizer ({', '.join(VOCABULARY_FILES)}). Save the encoder with its tokenizer."
        )
    stated = folder.config.get("architectures") or []
    if isinstance(stated, list) and any(
        str(name).endswith(("ForCausalLM", "LMHeadModel")) for name in stated
    ):
        raise ModelError(
            f"{path} ({', '.join(map(str, stated))}) is a causal language model, whose tokens do not see what"
            " follows them. Give a sentence encoder."
        )
    return folder


def _token_ids(tokenizer: Any, model: Any, words: Sequence[str], folder: ModelFolder) -> list[list[int]]:
    """Return each word's token ids, cut at the model's longest text; none for an unknown word."""
    longest = int(tokenizer.model_max_length)
    if positions := getattr(model.config, "max_position_embeddings", None):
        longest = min(longest, max(positions - POSITIONS_SET_ASIDE, 1))
    # Options stated, since a tokenizer.json may pad all texts to one length, or cut them at another.
    options = {"padding": False, "truncation": True, "max_length": longest}
    encoded = tokenizer(list(words), **options)["input_ids"] if words else []
    n_tokens = model.get_input_embeddings().num_embeddings
    largest = max((token for ids in encoded for token in ids), default=0)
    if largest >= n_tokens:
        raise ModelError(
            f"{folder.path}: its tokenizer writes token {largest}, but its model has {n_tokens}."
            " Use the tokenizer that belongs to the encoder."
        )
    meaningless = {tokenizer.unk_token_id, *tokenizer.all_special_ids}
    return [list(ids) if any(token not in meaningless for token in ids) else [] for ids in encoded]
