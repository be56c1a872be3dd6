"""Word vectors of a sentence encoder: the masked mean of a tiny BERT, and folders that are refused."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from biaskit.errors import ModelError
from biaskit.models.huggingface.sentence import encode_words, pooling_note

TOLERANCE = 1e-6
LETTERS = string.ascii_lowercase.replace("z", "")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
"""One token a letter, none for z."""
POSITIONS = 24
HIDDEN = 32
WORDS = ["nurse", "a", "engineering", "she", "doctor", "compassionate", "he", "nurse"]

pytestmark = pytest.mark.usefixtures("own_cache", "one_thread")


def build_tokenizer(**options: Any) -> PreTrainedTokenizerFast:
    ids = {token: i for i, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]"}
    special = {f"{name}_token": token for name, token in names.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special, **options)


def build_model(kind: str = "bert", **options: Any) -> Any:
    """Weights so large that padding or a wrong position shows."""
    size = {
        "vocab_size": len(VOCABULARY),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": 0,
    }
    chosen = {"bert": (BertConfig, BertModel), "roberta": (RobertaConfig, RobertaModel)}[kind]
    model = chosen[1](chosen[0](**{**size, **options})).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = torch.randn(weight.shape, generator=generator)
            # A large bias is common to all words and would make them one.
            weight.copy_(drawn * 0.5 if weight.dim() > 1 else drawn * 0.1 + ("LayerNorm.weight" in name))
    return model


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    folder = tmp_path / "encoder"
    build_model().save_pretrained(folder)
    build_tokenizer(model_max_length=POSITIONS).save_pretrained(folder)
    return folder


def padded_mean(model: Any, words: list[str], longest: int = POSITIONS) -> np.ndarray:
    """The rule of sentence-transformers, written out: padded batch, mask, sum over the mask, unit length."""
    ids = [[2, *(VOCABULARY.index(c if i == 0 else f"##{c}") for i, c in enumerate(w)), 3] for w in words]
    ids = [own if len(own) <= longest else [*own[: longest - 1], 3] for own in ids]
    width = max(map(len, ids))
    tokens = torch.tensor([[*own, *[0] * (width - len(own))] for own in ids])
    mask = torch.tensor([[1] * len(own) + [0] * (width - len(own)) for own in ids])
    with torch.no_grad():
        hidden = model(input_ids=tokens, attention_mask=mask).last_hidden_state
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return (mean / mean.norm(dim=1, keepdim=True)).double().numpy()


# --- the vectors -----------------------------------------------------------------------------------


def test_a_word_is_the_masked_mean_of_its_last_hidden_states(encoder: Path) -> None:
    expected = padded_mean(build_model(), WORDS)
    found = encode_words(encoder, WORDS)
    assert (len(WORDS), HIDDEN) == found.shape
    assert np.abs(expected - found).max() < TOLERANCE
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-12)


def test_different_words_have_different_vectors(encoder: Path) -> None:
    """A comparison that could not fail would prove nothing."""
    found = encode_words(encoder, WORDS)
    cosines = found[:-1] @ found[:-1].T
    assert np.max(cosines - np.eye(len(cosines))) < 0.99
    assert np.array_equal(found[0], found[-1])  # "nurse" twice


def test_order_and_size_of_batches_change_nothing(encoder: Path) -> None:
    expected = encode_words(encoder, WORDS, batch_size=1)
    assert np.abs(expected[::-1] - encode_words(encoder, WORDS[::-1])).max() < TOLERANCE
    assert (0, HIDDEN) == encode_words(encoder, []).shape
    for batch_size in (2, 3, 64):
        assert np.abs(expected - encode_words(encoder, WORDS, batch_size=batch_size)).max() < TOLERANCE


def test_a_tokenizer_that_pads_and_cuts_by_itself_is_told_not_to(tmp_path: Path) -> None:
    """As MiniLM's tokenizer.json, which pads every text to 128 tokens and cuts it there."""
    folder = tmp_path / "padding"
    model, tokenizer = build_model(), build_tokenizer(model_max_length=POSITIONS)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    inner = Tokenizer.from_file(str(folder / "tokenizer.json"))
    inner.enable_padding(length=20, pad_id=0, pad_token="[PAD]")
    inner.enable_truncation(6)
    inner.save(str(folder / "tokenizer.json"))
    assert np.abs(padded_mean(model, WORDS) - encode_words(folder, WORDS)).max() < TOLERANCE


@pytest.mark.parametrize(("said", "longest"), [(8, 8), (None, POSITIONS - 2), (400, POSITIONS - 2)])
def test_a_word_longer_than_the_model_is_cut(tmp_path: Path, said: int | None, longest: int) -> None:
    model = build_model()
    model.save_pretrained(tmp_path)
    build_tokenizer(**({"model_max_length": said} if said else {})).save_pretrained(tmp_path)
    words = ["abcdefghijklmnopqrstuvwxyabcdefghij", "cab"]
    assert np.abs(padded_mean(model, words, longest) - encode_words(tmp_path, words)).max() < TOLERANCE


def test_positions_that_count_from_the_padding_token_are_respected(tmp_path: Path) -> None:
    """RoBERTa has pad_token_id + 1 positions fewer than it states."""
    model = build_model("roberta", pad_token_id=1)
    model.save_pretrained(tmp_path)
    build_tokenizer().save_pretrained(tmp_path)
    found = encode_words(tmp_path, ["abcdefghijklmnopqrstuvwxyabcdefghij", "nurse"])
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)


def test_a_word_of_unknown_tokens_alone_has_no_vector(encoder: Path) -> None:
    found = encode_words(encoder, ["zzz", "nurse", "", "🙂"])
    assert [True, False, True, True] == np.isnan(found).all(axis=1).tolist()


# --- folders that are refused ----------------------------------------------------------------------


def rewrite(file: Path, **changes: Any) -> None:
    stated = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**stated, **changes}), encoding="utf-8")


def keep_tensors(folder: Path, wanted: Callable[[str], bool]) -> None:
    file = folder / "model.safetensors"
    save_file({k: v for k, v in load_file(file).items() if wanted(k)}, file, metadata={"format": "pt"})


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def larger_tokenizer(folder: Path) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    name = "embeddings.word_embeddings.weight"
    tensors[name] = tensors[name][:20].clone()
    save_file(tensors, file, metadata={"format": "pt"})
    rewrite(folder / "config.json", vocab_size=20)


def missing_layer(folder: Path) -> None:
    keep_tensors(folder, lambda name: not name.startswith("encoder.layer.1."))


def causal(folder: Path) -> None:
    rewrite(folder / "config.json", architectures=["LlamaForCausalLM"])


def unknown_kind(folder: Path) -> None:
    rewrite(folder / "config.json", model_type="nothing-known")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (pickled, "pickled weights are not loaded"),
        (no_tokenizer, "has no tokenizer"),
        (larger_tokenizer, "its tokenizer writes token"),
        (missing_layer, "lack 16 tensors that config.json requires, first encoder.layer.1."),
        (causal, "is a causal language model"),
        (unknown_kind, "cannot be loaded"),
    ],
)
def test_a_spoilt_folder_is_one_line(encoder: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(encoder)
    with pytest.raises(ModelError) as caught:
        encode_words(encoder, WORDS)
    assert message in str(caught.value)
    assert str(encoder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_code_in_the_folder_is_never_run(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = encoder / "ran"
    (encoder / "custom.py").write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    classes = {"AutoConfig": "custom.C", "AutoModel": "custom.M", "AutoTokenizer": ["custom.T", "custom.T"]}
    rewrite(encoder / "config.json", model_type="custom", auto_map=classes)
    rewrite(encoder / "tokenizer_config.json", auto_map=classes, tokenizer_class="T")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(ModelError, match="cannot be loaded"):
        encode_words(encoder, WORDS)
    assert not ran.exists()


# --- what the folder asks for ----------------------------------------------------------------------


@pytest.fixture
def steps(encoder: Path) -> Callable[..., Path]:
    """A sentence-transformers folder with the given kinds of steps and pooling."""

    def write(*kinds: str, **pooling: Any) -> Path:
        listed = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in kinds]
        (encoder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
        (encoder / "Pooling").mkdir(exist_ok=True)
        (encoder / "Pooling" / "config.json").write_text(json.dumps(pooling), encoding="utf-8")
        return encoder

    return write


def test_an_encoder_of_means_needs_no_note(encoder: Path, steps: Callable[..., Path]) -> None:
    assert pooling_note(encoder) is None
    plain = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "word_embedding_dimension": 8}
    assert pooling_note(steps("Transformer", "Pooling", "Normalize", **plain)) is None
    assert pooling_note(steps("Transformer", "Pooling", pooling_mode="mean")) is None


def test_another_pooling_or_a_further_step_is_named(steps: Callable[..., Path]) -> None:
    """BAAI/bge-m3, which the paper takes, reads the first token."""
    other = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    note = pooling_note(steps("Transformer", "Pooling", "Dense", **other))
    assert note is not None
    assert "was trained with pooling_mode_cls_token, Dense; here a word's vector is the mean" in note
