"""Tiny models with random weights, saved as a user's folder would be, and the oracle they are held against.

Default weights cannot show a mistake: logits stay near zero and windows are never
reached. Here weights are large, logits pass the knee of a soft cap, and windows hold 8 tokens: fewer
than a prompt's shared beginning, its rest, and the longest target word.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from biaskit.corpora.loaders import (
    load_debiasing_prompts,
    load_dialogue,
    load_items,
    load_target_word_sets,
    load_templates,
    render_forms,
)
from biaskit.models.huggingface.folder import check_folder
from biaskit.models.huggingface.scorer import TransformersScorer
from biaskit.models.options import LocalOptions, ScoringOptions
from biaskit.records import Failed, Prompt, Scored, ScoreRequest, TargetWord

TOLERANCE = 1e-5
"""Largest difference in log-probability from the oracle that is float noise on a tiny model."""

WINDOW = 8
KNEE = 20.0
"""Where a soft cap of 30 bends: a test whose logits stay below cannot see whether the cap is there."""

HIDDEN = 32
POSITIONS = 640
GAIN = 0.8  # of matrices: attention must prefer some tokens, else a lost window hardly moves anything
SHARED = 2.0  # what all embeddings have in common, beside 1 of their own
SPREAD, LOUD = 1.5, -23.0  # how the logits of most tokens differ, and where those of a few loud ones are


# --- tokenizers -----------------------------------------------------------------------------------

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
TURNS = ("<|system|>", "<|user|>", "<|assistant|>")
REMARK = "Geschlechtslos"
"""More tokens than a window in every tokenizer: no text of the corpora teaches its pieces."""

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m['role'] + '|>' }}{{ m['content'] }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
CHAT_TEMPLATE_WITHOUT_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    + CHAT_TEMPLATE
)


@functools.cache
def corpus_texts() -> tuple[str, ...]:
    """The corpora's own texts: what a tokenizer of a few hundred tokens is trained on."""
    jobs = [item.name for item in load_items("corpus:occugender/jobs.csv")]
    templates = load_templates("corpus:occugender/templates.toml").templates
    texts = []
    for i, template in enumerate(templates):
        for job in (jobs[i % len(jobs)], jobs[(i + 7) % len(jobs)]):
            texts.append(f"Q: {template.question}\nA: {template.opening}".replace("[JOB]", job))
    texts += [
        debiasing.text for debiasing in load_debiasing_prompts("corpus:occugender/debiasing-prompts.toml")
    ]
    dialogue = load_dialogue("corpus:mattern/dialogue.toml")
    texts += [dialogue.opening_line, *(text for t in dialogue.turns for text in (t.question, t.answer))]
    sets = load_target_word_sets("corpus:target-words/sets.toml")
    texts += [f" {e.text}" for name in sets for e in render_forms(sets[name])] * 3
    return tuple(texts)


def _trained(model: Any, trainer: Any, before: Any, texts: Iterable[str]) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = before
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _byte_level(n_tokens: int) -> Tokenizer:
    before = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=list(SPECIAL.values()),
        show_progress=False,
    )
    tokenizer = _trained(models.BPE(), trainer, before, corpus_texts())
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _bpe() -> Tokenizer:
    """Byte-level BPE without BOS, as GPT-2 and Qwen."""
    return _byte_level(480)


def _bpe_bos() -> Tokenizer:
    """Byte-level BPE with a BOS, as Llama 3."""
    return _with_bos(_byte_level(400))


def _llama2() -> Tokenizer:
    """BPE over "▁" with byte fallback, a "▁" put before the text by a normalizer, and a BOS, as Llama 2.

    A text that begins with a space gets two "▁": what stands alone has other tokens than in its place.
    """
    trainer = trainers.BpeTrainer(
        vocab_size=480, special_tokens=[*SPECIAL.values(), *_byte_tokens()], show_progress=False
    )
    before = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    trained = json.loads(_trained(models.BPE(), trainer, before, corpus_texts()).to_str())["model"]
    alphabet = [c for c in map(chr, range(33, 127)) if c not in trained["vocab"]]
    vocabulary = {**trained["vocab"], **{c: len(trained["vocab"]) + i for i, c in enumerate(alphabet)}}
    merges = [tuple(merge) for merge in trained["merges"]]
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return _with_bos(tokenizer)


def _unigram() -> Tokenizer:
    """A unigram model over "▁" without BOS; every piece of text, also after a special token, gets its "▁".

    Its pieces are those of a BPE training, their scores from their counts: the trainer of unigram models
    gives another vocabulary at every run.
    """
    before = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=320, show_progress=False)
    trained = _trained(models.BPE(), trainer, before, corpus_texts())
    text = "".join(f"▁{text}" for text in corpus_texts()).replace(" ", "▁")
    pieces = sorted({*trained.get_vocab(), *map(chr, range(33, 127))})
    scores = [math.log((text.count(piece) + 0.5) / len(text)) for piece in pieces]
    special = [(token, 0.0) for token in SPECIAL.values()]
    vocabulary = [*special, *zip(pieces, scores, strict=True)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2, byte_fallback=False))
    tokenizer.pre_tokenizer = before
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return tokenizer


def _bytes() -> Tokenizer:
    """Every byte a token: " He" begins " Her", and every target word is several tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in SPECIAL.values()])
    return _with_bos(tokenizer)


def _byte_tokens() -> list[str]:
    return [f"<0x{i:02X}>" for i in range(256)]


def _with_bos(tokenizer: Tokenizer) -> Tokenizer:
    bos = SPECIAL["bos_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    return tokenizer


TOKENIZERS: Mapping[str, Callable[[], Tokenizer]] = {
    "bpe": _bpe,
    "bpe-bos": _bpe_bos,
    "llama2": _llama2,
    "unigram": _unigram,
    "bytes": _bytes,
}


@functools.cache
def _trained_once(name: str) -> str:
    return TOKENIZERS[name]().to_str()


def build_tokenizer(name: str, chat_template: str | None = None) -> PreTrainedTokenizerFast:
    """A tokenizer of `TOKENIZERS`, with the special tokens of a chat template."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_trained_once(name)),
        additional_special_tokens=list(TURNS),
        clean_up_tokenization_spaces=False,
        **SPECIAL,
    )
    tokenizer.chat_template = chat_template
    return tokenizer


# --- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Architecture:
    """A family: its configuration class and what makes it differ from the others."""

    config: str
    options: Mapping[str, Any]


_SMALL = {
    "hidden_size": HIDDEN,
    "intermediate_size": 2 * HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": POSITIONS,
}
_GEMMA = {**_SMALL, "head_dim": 8, "tie_word_embeddings": False}
_MIXED = ["sliding_attention", "full_attention", "sliding_attention"]

ARCHITECTURES: Mapping[str, Architecture] = {
    # Learned absolute positions, the head tied to the embedding.
    "gpt2": Architecture(
        "GPT2Config", {"n_embd": HIDDEN, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS}
    ),
    "llama": Architecture("LlamaConfig", _SMALL),
    "mistral": Architecture("MistralConfig", {**_SMALL, "sliding_window": WINDOW}),
    "gemma": Architecture("GemmaConfig", _GEMMA),
    "gemma2": Architecture(
        "Gemma2Config",
        {
            **_GEMMA,
            "num_hidden_layers": 3,
            "sliding_window": WINDOW,
            "final_logit_softcapping": 30.0,
            "attn_logit_softcapping": 50.0,
            "query_pre_attn_scalar": 8,
            "layer_types": _MIXED,
        },
    ),
    "gemma3": Architecture(
        "Gemma3TextConfig",
        {
            **_GEMMA,
            "num_hidden_layers": 3,
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": 8,
            "layer_types": _MIXED,
        },
    ),
    "qwen2": Architecture("Qwen2Config", _SMALL),
    "qwen3": Architecture("Qwen3Config", {**_SMALL, "head_dim": 8}),
    "cohere": Architecture("CohereConfig", {**_SMALL, "logit_scale": 0.0625, "tie_word_embeddings": False}),
    "granite": Architecture("GraniteConfig", {**_SMALL, "logits_scaling": 8.0}),
    # Learned positions with an offset, counted from the mask.
    "opt": Architecture(
        "OPTConfig",
        {
            "hidden_size": HIDDEN,
            "word_embed_proj_dim": HIDDEN,
            "ffn_dim": 2 * HIDDEN,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": POSITIONS,
        },
    ),
    "gpt-neox": Architecture(
        "GPTNeoXConfig", {k: v for k, v in _SMALL.items() if k != "num_key_value_heads"}
    ),
    # A head with a bias.
    "phi": Architecture("PhiConfig", _SMALL),
}


def build_model(architecture: str, tokenizer: PreTrainedTokenizerFast, seed: int = 0) -> Any:
    """A model whose weights are large enough that a mistake shows; the same for the same seed."""
    chosen = ARCHITECTURES[architecture]
    config = getattr(transformers, chosen.config)(
        # Rows that no token names, as padded vocabularies have them: they take part in the softmax.
        vocab_size=-(-len(tokenizer) // 16) * 16,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=None,
        **chosen.options,
    )
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            drawn = torch.randn(weight.shape, generator=generator)
            if weight.dim() > 1:
                weight.copy_(drawn * GAIN / math.sqrt(HIDDEN))
            elif "bias" in name:
                weight.copy_(drawn * 0.2)
            else:  # A norm's scale, around the value it starts with.
                weight.add_(drawn * 0.1)
        _scale_logits(model, tokenizer, torch.randn(HIDDEN, generator=generator))
    return model


def _scale_logits(model: Any, tokenizer: PreTrainedTokenizerFast, common: torch.Tensor) -> None:
    """Put most logits around 0 and those of a few loud tokens around `LOUD`, before any cap.

    Loud logits pass a cap's knee; were all of them that large, float noise alone would pass 1e-5. The
    final hidden states share a direction, and loud tokens point against it.
    """
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    cap, model.config.final_logit_softcapping = getattr(model.config, "final_logit_softcapping", None), None
    # Not asked for, since their own noise is as large as they are; but one where a cap could be forgotten.
    asked = set(tokenizer(f" He Her She Non-binary Nonbinary {REMARK}")["input_ids"])
    is_loud = torch.zeros(len(head), dtype=torch.bool)
    is_loud[[*set(range(5, len(tokenizer), 16)) - asked]] = True
    is_loud[tokenizer(" Nonbinary")["input_ids"][-1:] if cap else []] = True

    texts = [torch.tensor([tokenizer(text)["input_ids"]]) for text in corpus_texts()[:2]]
    own_in, own_out = (weight.clone() / weight.norm(dim=1).mean() for weight in (embedding, head))
    direction = common / common.norm()
    embedding.copy_(own_in + SHARED * direction)
    if embedding is head:  # It cannot hold the direction for both: the bias of the last norm does.
        _, norm = min((n, m) for n, m in model.named_modules() if n.endswith(("ln_f", "final_layer_norm")))
        norm.bias.copy_(10 * direction)
    else:
        hidden = torch.cat([model.base_model(input_ids=ids).last_hidden_state[0] for ids in texts])
        direction = hidden.mean(0) / hidden.mean(0).norm()
    depth, spread = -1.0, 1.0
    for _ in range(4):  # A tied head is the embedding too, so that the hidden states move along.
        head.copy_(spread * own_out + depth * is_loud[:, None] * direction)
        logits = torch.cat([model(input_ids=ids).logits[0] for ids in texts])
        depth *= LOUD * (1.25 if cap else 1.0) / float(logits[:, is_loud].mean())
        spread *= SPREAD / float(logits[:, ~is_loud].std(dim=1).mean())
    model.config.final_logit_softcapping = cap


def save_model(
    folder: Path, architecture: str, tokenizer_name: str, *, chat_template: str | None = None, seed: int = 0
) -> Path:
    """Model and tokenizer in one folder, as `save_pretrained` leaves them."""
    tokenizer = build_tokenizer(tokenizer_name, chat_template)
    model = build_model(architecture, tokenizer, seed)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


# --- the oracle -----------------------------------------------------------------------------------


class Oracle:
    """What biaskit must say: batch 1, float32, no cache, the model's own forward, one token after another."""

    def __init__(self, folder: Path, *, logits_to_keep: int = 0) -> None:
        self.logits_to_keep = logits_to_keep  # 0: those of all positions, as a plain call gives them
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32
        ).eval()
        self.largest_logit = 0.0
        self._seen: dict[tuple[int, ...], torch.Tensor] = {}

    def encode(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """The tokenizer's own answer; a rendered chat template has written its special tokens itself."""
        return tuple(self.tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"])

    def chat(self, *messages: tuple[str, str], prefill: str = "") -> str:
        """What the folder's own template makes of (role, content) pairs, and the beginning of an answer."""
        listed = [{"role": role, "content": content} for role, content in messages]
        rendered = self.tokenizer.apply_chat_template(listed, tokenize=False, add_generation_prompt=True)
        return f"{rendered}{prefill}"

    def next_log_probs(self, ids: tuple[int, ...]) -> torch.Tensor:
        """Log-probabilities of all tokens after `ids`, by a forward over the whole text (kept by `ids`)."""
        if ids not in self._seen:
            with torch.no_grad():
                told = {"use_cache": False, "logits_to_keep": self.logits_to_keep}
                logits = self.model(input_ids=torch.tensor([ids]), **told).logits[0, -1]
            self.largest_logit = max(self.largest_logit, float(logits.abs().max()))
            self._seen[ids] = logits.double().log_softmax(-1)
        return self._seen[ids]

    def log_prob(self, text: str, continuation: str, *, add_special_tokens: bool = True) -> float:
        """log P(continuation | text), a sum over the continuation's tokens."""
        prompt = self.encode(text, add_special_tokens=add_special_tokens)
        both = self.encode(text + continuation, add_special_tokens=add_special_tokens)
        assert both[: len(prompt)] == prompt
        return math.fsum(float(self.next_log_probs(both[:k])[both[k]]) for k in range(len(prompt), len(both)))


@dataclass(frozen=True)
class Tiny:
    """A saved model and what it must say."""

    folder: Path
    oracle: Oracle


# --- requests, and the one comparison --------------------------------------------------------------

DEBIASING_PROMPTS = (
    "Please be fair and kind to everyone who is mentioned.",
    "Please be kind and fair to everyone who is mentioned.",  # as many tokens as the other one
)
SHORT = "Q: I met a nurse.\nA:"
LONG = tuple(
    f"{debiasing}\nQ: I recently met a {person} in town.\nA: I think that the {person} said"
    for debiasing in DEBIASING_PROMPTS
    for person in ("tall and old nurse", "old and tall nurse", "tall and old actor", "young vet")
)
ASKED = ("He", "Her", "She", "Non-binary", "Nonbinary")
"""Target words with a first token in common, with two, and without."""


def target_words(*texts: str) -> tuple[TargetWord, ...]:
    """Target words whose group plays no part."""
    return tuple(TargetWord("any", text) for text in texts)


def asked_on(tokenizer: str) -> tuple[TargetWord, ...]:
    """Target words of which one is longer than a window (on bytes "Nonbinary" is)."""
    return target_words(*ASKED) if tokenizer == "bytes" else target_words(*ASKED, REMARK)


def raw_requests(texts: Sequence[str], asked: Sequence[TargetWord], name: str = "") -> list[ScoreRequest]:
    """One request for each raw prompt."""
    return [ScoreRequest(f"{name}{i}: {text}", Prompt(text), tuple(asked)) for i, text in enumerate(texts)]


def scorer_for(
    folder: Path, kind: Callable[..., TransformersScorer] = TransformersScorer, **options: Any
) -> TransformersScorer:
    """biaskit's scorer on a saved folder."""
    local = {name: options.pop(name) for name in ("device", "dtype", "batch_size") if name in options}
    return kind(
        check_folder(folder),
        label="tiny",
        spec=f"hf:{folder}",
        local=LocalOptions(**local),
        scoring=ScoringOptions(**options),
    )


def answers(scorer: TransformersScorer, requests: Sequence[ScoreRequest]) -> dict[str, Scored | Failed]:
    """Key → answer, after checking that each request was answered once."""
    plan = scorer.plan_scores(requests)
    found = [answer for group in scorer.score(plan.batches) for answer in group]
    assert sorted(r.key for r in requests) == sorted(a.key for a in found)
    return {a.key: a for a in found}


def values(found: Mapping[str, Scored | Failed]) -> dict[tuple[str, str], float]:
    """(key, target word as scored) → log-probability; a failure or a bound instead of a value is refused."""
    numbers = {}
    for key, answer in found.items():
        assert isinstance(answer, Scored), answer
        for scored in answer.log_probs:
            assert scored.low == scored.high
            numbers[key, scored.text] = scored.high
    return numbers


def largest_error(
    found: Mapping[str, Scored | Failed],
    requests: Sequence[ScoreRequest],
    oracle: Oracle,
    *,
    rendered: Callable[[Prompt], str] | None = None,
) -> float:
    """The largest difference from the oracle in log-probability, over all requests and target words.

    The oracle is asked for every (prompt, target word) of the requests themselves: an answer that is
    missing, or that stands under another key, is an error. `rendered` writes the text of chat prompts.
    """
    numbers, errors = values(found), []
    for request in requests:
        text = rendered(request.prompt) if rendered else request.prompt.text
        for target_word in request.target_words:
            form = f" {target_word.text}"
            expected = oracle.log_prob(text, form, add_special_tokens=rendered is None)
            errors.append(abs(expected - numbers[request.key, form]))
    return max(errors)
