"""Where a prompt's ending begins: behind it nothing depends on what stands before, or there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from fakes.tiny_models import CHAT_TEMPLATE, build_tokenizer, corpus_texts, expressions
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from biaskit.models.huggingface import endings as module
from biaskit.models.huggingface import preparing
from biaskit.models.huggingface.endings import endings_of
from biaskit.models.huggingface.preparing import Prepared, prepare
from biaskit.models.huggingface.rendering import Renderer
from biaskit.records import Prompt, ScoreRequest

FORMS = ("", " she", " he", "she", " They", "'s", " a man.", "  two", " 7", "\nA:", " é", ".")


def trained(before: Any, normalizer: Any = None, **options: Any) -> Tokenizer:
    """Byte-pair encoding with a few hundred merges, words cut as `before` does."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, before
    letters = pre_tokenizers.ByteLevel.alphabet() if "ByteLevel" in repr(before) else []
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>"], initial_alphabet=letters, show_progress=False
    )
    tokenizer.train_from_iterator(corpus_texts(), trainer)
    for name, value in options.items():  # training sets some of them anew
        setattr(tokenizer.model, name, value)
    return tokenizer


def words(pattern: str) -> Any:
    cut = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def written() -> Any:
    return normalizers.Replace(" ", "▁")


def uncut(tokenizer: Tokenizer) -> Tokenizer:
    """The same vocabulary as Gemma uses its own: spaces are written, and no word is cut off."""
    tokenizer.normalizer = written()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return tokenizer


MADE: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "prefix": lambda: trained(pre_tokenizers.ByteLevel(add_prefix_space=True), normalizers.NFC()),
    "digits": lambda: trained(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel()])
    ),
    **{f"words{i}": lambda p=p: trained(words(p)) for i, p in enumerate(sorted(module._PATTERNS))},
    # Where nothing cuts words, merges reach over a space if the vocabulary lets them: here, and in the next.
    "gemma": lambda: uncut(trained(pre_tokenizers.Metaspace(prepend_scheme="never"), fuse_unk=True)),
    "crossing": lambda: trained(None, normalizers.Sequence([normalizers.Prepend("▁"), written()])),
    "metaspace": lambda: trained(pre_tokenizers.Metaspace(prepend_scheme="first")),
    **{
        name: lambda name=name: build_tokenizer(name, CHAT_TEMPLATE).backend_tokenizer
        for name in ("bpe", "bpe-bos", "llama2")
    },
}
BUILT = {name: make() for name, make in MADE.items()}


def own(tokenizer: Tokenizer, text: str, form: str) -> tuple[bool, list[int]]:
    """Whether (prompt + form) begins with the prompt's tokens, and what comes behind as many."""
    before = tokenizer.encode(text, add_special_tokens=False).ids
    both = tokenizer.encode(text + form, add_special_tokens=False).ids
    return both[: len(before)] == before, both[len(before) :]


PIECES = ("nurse", "The", "said", ":", "?", "</s>", "<s>", "x1", "’", "e\u0301", "\u0301", "日", "\n", "a")
SPACES = (" ", " ", "", "  ", "\t", "▁", "Ġ")
texts = st.lists(st.sampled_from(SPACES) | st.sampled_from(PIECES) | st.text(max_size=3), max_size=6).map(
    "".join
)


@pytest.mark.parametrize("name", MADE)
@given(first=texts, other=texts, letters=st.tuples(*[st.sampled_from("aedt.:1>?Z%")] * 2), end=texts)
def test_expressions_have_the_same_tokens_behind_all_prompts_with_one_ending(
    name: str, first: str, other: str, letters: tuple[str, str], end: str
) -> None:
    tokenizer = BUILT[name]
    ending = endings_of(tokenizer)
    assert ending is not None
    prompts = [f"{before}{letter} {end}" for before, letter in zip((first, other), letters, strict=True)]
    found = {ending(prompt) for prompt in prompts}
    assert all(prompt.endswith(one) for prompt in prompts for one in found if len(found) == 1)
    if len(found) == 1 and found != {""}:
        for form in FORMS:
            assert own(tokenizer, prompts[0], form) == own(tokenizer, prompts[1], form)


@pytest.mark.parametrize("name", [name for name in MADE if name != "crossing"])
def test_endings_are_found_where_texts_end_in_words(name: str) -> None:
    ending = endings_of(BUILT[name])
    assert ending is not None
    found = {ending(f"Picture a {job}. The {job} said, {job}: is") for job in ("nurse", "truck driver")}
    assert found == {" is"}


def test_no_cut_where_a_token_holds_a_letter_with_a_space_behind_it() -> None:
    tokenizer = BUILT["crossing"]
    crossing = {
        t[i] for t in tokenizer.get_vocab() for i in range(len(t) - 1) if t[i + 1] == "▁" and t[i] != "▁"
    }
    assert {"e", "a"} & crossing, "nothing crosses: the test shows nothing"
    ending = endings_of(tokenizer)
    assert ending is not None
    for letter in filter(str.isascii, crossing):
        assert not ending(f"x{letter} she").startswith(" ")


def test_without_that_rule_tokens_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule is needed: with every letter safe, some expression has other tokens behind one ending."""
    monkeypatch.setattr(module, "_HOLDS_A_SPACE", module.re.compile("(?!)"))
    tokenizer = BUILT["crossing"]
    ending, rng = endings_of(tokenizer), Random(1)
    assert ending is not None
    parts = sorted({word for text in corpus_texts() for word in text.split()})
    found: dict[tuple[str, str], set[str]] = {}
    for _ in range(3000):
        text = " ".join(rng.choices(parts, k=3))
        for form in FORMS:
            found.setdefault((ending(text), form), set()).add(json.dumps(own(tokenizer, text, form)))
    assert any(len(several) > 1 for several in found.values())


# --- what is not known has none -----------------------------------------------------------------------------


def with_added(**flags: bool) -> Tokenizer:
    tokenizer = MADE["gpt2"]()
    tokenizer.add_tokens([AddedToken("nurse", **flags)])
    return tokenizer


def without_spaces() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "<unk>": 1}, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


UNKNOWN: dict[str, Callable[[], Tokenizer]] = {
    "unigram": lambda: build_tokenizer("unigram").backend_tokenizer,
    "another pattern": lambda: trained(words(r"\w+ \w+|\s+|.")),
    "another sign": lambda: trained(pre_tokenizers.Metaspace(replacement="_")),
    "lower case": lambda: trained(pre_tokenizers.ByteLevel(), normalizers.Lowercase()),
    "punctuation": lambda: trained(pre_tokenizers.Punctuation(), written()),
    "plain spaces": lambda: trained(pre_tokenizers.Split(" ", "merged_with_previous")),
    "pieces of words": lambda: trained(pre_tokenizers.ByteLevel(), continuing_subword_prefix="##"),
    "ends of words": lambda: trained(pre_tokenizers.ByteLevel(), end_of_word_suffix="</w>"),
    "dropout": lambda: trained(pre_tokenizers.ByteLevel(), dropout=0.1),
    "no space": without_spaces,
    "a token that takes spaces": lambda: with_added(rstrip=True),
    "a token that takes spaces before it": lambda: with_added(lstrip=True),
    "a token that looks at its neighbours": lambda: with_added(single_word=True),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_other_ways_of_tokenising_have_no_endings(what: str) -> None:
    assert endings_of(UNKNOWN[what]()) is None


def test_no_ending_begins_behind_an_added_token() -> None:
    tokenizer = MADE["gpt2"]()
    tokenizer.add_tokens([AddedToken("nurse")])
    ending = endings_of(tokenizer)
    assert ending is not None
    assert ending("my nurse said") == " nurse said"
    assert ending("my plumber said") == " said"


# --- plans --------------------------------------------------------------------------------------------------


def requests(n: int = 40) -> list[ScoreRequest]:
    asked = expressions("she", "he", "they", "a man")
    made = []
    for i in range(n):
        for k, text in enumerate((f"The nurse {i} said that", f"Job: clerk {i}.\nA:", f"clerk{i}")):
            made.append(ScoreRequest(f"{i}-{k}", Prompt(text), asked))
        made.append(ScoreRequest(f"{i}-chat", Prompt(f"clerk {i}, what is it", form="chat"), asked))
    return made


def renderer_of(name: str) -> Renderer:
    return Renderer(build_tokenizer(name, chat_template=CHAT_TEMPLATE))


def asked(monkeypatch: pytest.MonkeyPatch, name: str, many: int) -> tuple[dict[str, Prepared], int]:
    """What a plan comes to, and how many texts were tokenised for it."""
    renderer, n = renderer_of(name), 0
    encode = renderer.encode

    def counted(some: Any) -> Any:
        nonlocal n
        n += len(some)
        return encode(some)

    monkeypatch.setattr(preparing, "MANY", many)
    monkeypatch.setattr(renderer, "encode", counted)
    return prepare(renderer, requests(), ends=False), n


@pytest.mark.parametrize("name", ["bpe", "bpe-bos", "llama2", "unigram", "bytes"])
@pytest.mark.parametrize("at_once", [1, 7, 512])
def test_a_long_plan_has_the_tokens_of_a_short_one(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "AT_ONCE", at_once)
    long, n_long = asked(monkeypatch, name, 0)
    short, n_short = asked(monkeypatch, name, 10**9)
    assert long == short
    assert n_long == n_short if name == "unigram" else n_long < 0.7 * n_short


def test_an_ending_that_does_not_hold_is_believed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tokenizer that knows the whole text: what stands far in front changes the tokens of the end."""
    backend = MADE["gemma"]()
    looks_back = normalizers.Replace(Regex("(?<=7 said that) "), "a")
    backend.normalizer = normalizers.Sequence([looks_back, written()])
    assert endings_of(backend) is None
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)

    def planned(many: int) -> dict[str, Prepared]:
        monkeypatch.setattr(preparing, "MANY", many)
        renderer = Renderer(tokenizer)
        monkeypatch.setattr(renderer, "endings", lambda: lambda text: text[-5:])
        texts = [f"The nurse {i} said that" for i in range(40)]
        return prepare(
            renderer,
            [ScoreRequest(t, Prompt(t), expressions("she", "he", "they")) for t in texts],
            ends=False,
        )

    assert planned(0) == planned(10**9)
    assert len({entry.continuations for entry in planned(0).values()}) == 2
