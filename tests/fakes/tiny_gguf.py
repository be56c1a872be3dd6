"""A tiny random language model as one GGUF file: what llama.cpp's servers load in no time.

A vocabulary of a few hundred pieces makes an echo, which llama-cpp-python sorts in Python at every
position, a matter of milliseconds. Logits are spread wide: near zero every mistake looks right.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import gguf
import numpy as np

WIDTH, HEADS, HIDDEN, LAYERS, CONTEXT = 32, 4, 64, 2, 512
BOS, EOS, UNKNOWN = 1, 2, 0
WORDS = (
    *("She", "He", "They", "Man", "Woman", "Male", "Female", "Neutral", "Her", "Him", "Them"),
    *("she", "he", "they", "man", "woman", "male", "female", "neutral", "her", "him", "them"),
    *(
        "the",
        "is",
        "of",
        "a",
        "gender",
        "nurse",
        "plumber",
        "met",
        "recently",
        "about",
        "last",
        "time",
        "you",
    ),
)
"""Whole pieces, each with the beginnings of its text so that merges reach it; every other word is spelt."""
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
SPREAD = 2.5  # standard deviation of logits
LIKELY, RARE, END = 2.0, -6.0, -1.0  # added to the logits of words, single bytes and the end of a text


def write_tiny_gguf(
    path: Path,
    *,
    seed: int = 5,
    bos: bool = True,
    licence: str = "",
    keys: Mapping[str, object] = MappingProxyType({}),
    more: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> None:
    """Write the model; `bos`: whether a text begins with a token of its own, as most models' do.

    `keys`: more of the architecture's metadata; `more`: tensors beside its own.
    """
    writer = gguf.GGUFWriter(path, "llama")
    pieces, kinds = _vocabulary()
    writer.add_name("tiny")
    if licence:
        writer.add_license(licence)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    # The longest piece first, so that the beginnings of a word lead to the whole word.
    writer.add_token_scores([float(len(piece)) for piece in pieces])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(EOS)
    writer.add_unk_token_id(UNKNOWN)
    writer.add_add_bos_token(bos)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHAT_TEMPLATE)
    for key, value in keys.items():
        add = {
            str: writer.add_string,
            bool: writer.add_bool,
            int: writer.add_uint32,
            float: writer.add_float32,
        }
        add[type(value)](key if key.startswith("tokenizer") else f"llama.{key}", value)
    for name, values in {**_weights(pieces, kinds, np.random.default_rng(seed)), **more}.items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _vocabulary() -> tuple[list[str], list[int]]:
    """Pieces and their kinds: three of control, 256 bytes, the characters of ASCII, words."""
    control = ["<unk>", "<s>", "</s>"]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    single_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    characters = ["▁", *(chr(code) for code in range(33, 127))]
    words = {f"▁{word[:end]}" for word in WORDS for end in range(1, len(word) + 1)}
    pieces = [*control, *single_bytes, *characters, *sorted(words)]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (len(characters) + len(words))
    return pieces, [int(kind) for kind in kinds]


def _weights(pieces: list[str], kinds: list[int], sample: np.random.Generator) -> dict[str, np.ndarray]:
    """Random matrices; the first component of every position is constant, so its output row is a bias."""

    def matrix(rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
        return sample.normal(0.0, gain / np.sqrt(columns), (rows, columns))

    def silent(values: np.ndarray) -> np.ndarray:
        values[0] = 0.0  # adds nothing to the constant component
        return values

    embedding = sample.normal(0.0, 1.0, (len(pieces), WIDTH))
    embedding[:, 0] = 2.0
    weights = {"token_embd.weight": embedding, "output_norm.weight": np.ones(WIDTH)}
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        weights[f"{block}.attn_norm.weight"] = np.ones(WIDTH)
        weights[f"{block}.ffn_norm.weight"] = np.ones(WIDTH)
        for name in ("attn_q", "attn_k", "attn_v"):
            weights[f"{block}.{name}.weight"] = matrix(WIDTH, WIDTH, gain=1.5)
        weights[f"{block}.attn_output.weight"] = silent(matrix(WIDTH, WIDTH, gain=1.5))
        weights[f"{block}.ffn_gate.weight"] = matrix(HIDDEN, WIDTH, gain=1.5)
        weights[f"{block}.ffn_up.weight"] = matrix(HIDDEN, WIDTH, gain=1.5)
        weights[f"{block}.ffn_down.weight"] = silent(matrix(WIDTH, HIDDEN, gain=1.5))
    output = sample.normal(0.0, SPREAD / np.sqrt(WIDTH), (len(pieces), WIDTH))
    output[:, 0] = [_bias(piece, kind) for piece, kind in zip(pieces, kinds, strict=True)]
    return weights | {"output.weight": output}


def _bias(piece: str, kind: int) -> float:
    if kind == gguf.TokenType.BYTE:
        return RARE
    if kind != gguf.TokenType.NORMAL:
        return END if piece == "</s>" else RARE
    return LIKELY if piece.removeprefix("▁") in WORDS else 0.0
