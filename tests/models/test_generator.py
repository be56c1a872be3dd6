"""A local sample is one from the model's own distribution; the contract is in `api/test_api_contract.py`."""

from __future__ import annotations

import hashlib
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from fakes.tiny_models import (
    CHAT_TEMPLATE,
    POSITIONS,
    SHORT,
    Oracle,
    Tiny,
)
from needs import require_demo, require_demo_base
from transformers import Cache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from biaskit.errors import ModelError
from biaskit.models.base import TextGenerator
from biaskit.models.huggingface.folder import ModelFolder, check_folder
from biaskit.models.huggingface.generator import GumbelNoise, TransformersGenerator, keep_in_buffers
from biaskit.models.huggingface.head import use_onednn
from biaskit.models.options import Dtype, LocalOptions
from biaskit.models.scripted import ScriptedGenerator
from biaskit.records import Failed, Prompt, Sample, SampleRequest, Sampling

OTHER = "Q: Talk about the last time you met a tall and old actor.\nA: I"
Saved = Callable[..., Tiny]


def generator_for(folder: Path, batch_size: int | None = 8) -> TransformersGenerator:
    local = LocalOptions(device="cpu", dtype="float32", batch_size=batch_size)
    return TransformersGenerator(check_folder(folder), label="tiny", spec=f"hf:{folder}", local=local)


def samples_of(
    text: str | Prompt, seeds: Iterable[int], *, n: int = 12, temperature: float = 1.0, top_p: float = 1.0
) -> list[SampleRequest]:
    """One request per seed; its key says which."""
    prompt = Prompt(text, "completion") if isinstance(text, str) else text
    sampling = Sampling(temperature, top_p, n)
    return [
        SampleRequest(f"{prompt.text}|{seed}", prompt, sampling, seed, number)
        for number, seed in enumerate(seeds)
    ]


def answers(model: TextGenerator, requests: Sequence[SampleRequest]) -> dict[str, Sample | Failed]:
    """Key → answer, after checking that each request was answered once."""
    plan = model.plan_samples(requests)
    found = [answer for group in model.generate(plan.batches) for answer in group]
    assert sorted(r.key for r in requests) == sorted(a.key for a in found)
    return {a.key: a for a in found}


def texts(found: dict[str, Sample | Failed]) -> dict[str, str]:
    out = {}
    for key, answer in found.items():
        assert isinstance(answer, Sample), answer
        out[key] = answer.text
    return out


def altered(saved: Tiny, target: Path, **generation: Any) -> Path:
    """A copy of a saved model with other entries in its generation_config.json."""
    shutil.copytree(saved.folder, target)
    path = target / "generation_config.json"
    stated = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**stated, **generation}))
    return target


def mixed(n: int = 7) -> list[SampleRequest]:
    """Samples of two prompts, one after the other in turn."""
    pairs = zip(samples_of(SHORT, range(n)), samples_of(OTHER, range(n)), strict=True)
    return [request for pair in pairs for request in pair]


def test_a_scripted_draw_takes_the_text_of_its_number_and_the_finish_of_its_line() -> None:
    lines = [{"contains": "nurse", "texts": ["a", "b"], "finish": "filter"}]
    model = ScriptedGenerator(lines, label="s", spec="scripted:s")
    found = [answers(model, [r])[r.key] for r in samples_of(SHORT, range(3))]
    assert [("a", "filter"), ("b", "filter"), ("a", "filter")] == [
        (a.text, a.finish) for a in found if isinstance(a, Sample)
    ]
    [nothing] = answers(model, samples_of(OTHER, [1])).values()
    assert isinstance(nothing, Failed)
    assert "no line of the script" in nothing.reason


def test_a_prompt_whose_logits_are_nan_fails_and_the_others_are_answered(tiny: Saved, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = altered(tiny("llama", "bpe"), tmp_path / "nan")
    weights = load_file(folder / "model.safetensors")
    whole = answers(generator_for(folder), samples_of(SHORT, range(3)))
    used = set(Oracle(folder).encode(SHORT + "".join(texts(whole).values())))
    broken = next(i for i in Oracle(folder).encode(OTHER) if i not in used)
    weights["model.embed_tokens.weight"][broken] = torch.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    requests = [*samples_of(OTHER, range(2)), *samples_of(SHORT, range(3)), *samples_of(OTHER, [7])]
    found = answers(generator_for(folder), requests)
    assert {r.key for r in requests if r.prompt.text == OTHER} == {
        key for key, a in found.items() if isinstance(a, Failed)
    }
    assert texts(whole) == {key: a.text for key, a in found.items() if isinstance(a, Sample)}


@pytest.mark.parametrize("top_p", [1.0, 0.5])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_one_row_of_broken_logits_says_so_and_leaves_its_neighbour_alone(value: float, top_p: float) -> None:
    noise, alone = (GumbelNoise(seeds, Sampling(top_p=top_p)) for seeds in ([3, 4], [4]))
    scores = torch.linspace(-1, 1, 50).repeat(2, 1)
    scores[0, 7] = value
    for _ in range(20):
        slices, of_row = ([(0, part[:, :20]), (20, part[:, 20:])] for part in (scores, scores[1:]))
        found = noise.sample(slices, [True, True])
        assert [True, False] == noise.broken
        assert found[1] == alone.sample(of_row, [True])[0]


def test_a_row_of_impossible_tokens_is_broken_and_one_that_ended_draws_nothing() -> None:
    noise, other = GumbelNoise([1, 2, 3], Sampling()), GumbelNoise([3], Sampling())
    scores = torch.zeros(3, 50)
    scores[0] = -torch.inf
    noise.sample([(0, scores)], [True, True, False])
    assert [True, False, False] == noise.broken
    assert noise.sample([(0, scores)], [True] * 3)[2] == other.sample([(0, scores[2:])], [True])[0]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_slices_and_threads_change_no_token(temperature: float) -> None:
    """The exponentials of a row come in the order of the vocabulary, however it is cut."""
    scores = torch.randn(5, 3000, generator=torch.Generator().manual_seed(1)) * 3
    found = []
    with ThreadPoolExecutor(3) as pool:
        for width, each in ((3000, map), (7, map), (1999, pool.map)):
            noise = GumbelNoise(range(5), Sampling(temperature), each)
            slices = [(start, scores[:, start : start + width]) for start in range(0, 3000, width)]
            found.append([noise.sample(slices, [True] * 5).tolist() for _ in range(6)])
    assert found[0] == found[1] == found[2]
    assert len({token for tokens in found[0] for token in tokens}) > 20


# --- batches are of one length --------------------------------------------------------------------------


def test_a_batch_is_of_one_length_and_one_sampling(tiny: Saved) -> None:
    model = generator_for(tiny("llama", "bpe").folder, 4)
    requests = [*mixed(9), *samples_of(SHORT, range(20, 23), temperature=0.5)]
    plan = model.plan_samples(requests)
    for batch in plan.batches:
        assert 1 == len({(len(model._prompts[r.prompt][1]), r.sampling) for r in batch})
    # 9 = 3 + 3 + 3, not 4 + 4 + 1: a last batch of one would cost as much as a full one.
    assert [3, 3, 3, 3, 3, 3, 3] == [len(batch) for batch in plan.batches]
    lengths = {text: len(Oracle(tiny("llama", "bpe").folder).encode(text)) for text in (SHORT, OTHER)}
    assert sum(lengths[r.prompt.text] for r in requests) == plan.prompt_tokens
    assert 12 * len(requests) == plan.new_tokens_max


# --- what is drawn --------------------------------------------------------------------------------------

N_SEEDS = 6000


def wanted_shares(oracle: Oracle, text: str, temperature: float, top_p: float) -> np.ndarray[Any, Any]:
    """softmax(logits / temperature) of a plain forward, cut to its nucleus, in double precision."""
    shares = np.exp(oracle.next_log_probs(oracle.encode(text)).numpy() / temperature)
    shares /= shares.sum()
    kept, total = np.zeros(len(shares), dtype=bool), 0.0
    for token in np.argsort(-shares):
        kept[token] = True
        total += shares[token]
        if total >= top_p:
            break
    shares[~kept] = 0.0
    return shares / shares.sum()


def first_tokens(model: TransformersGenerator, requests: Sequence[SampleRequest]) -> list[int]:
    """The first new token of each sample, as an id."""
    plan = model.plan_samples(requests)
    model._load()
    return [new[0] for batch in plan.batches for new in model._new_ids(batch) if new is not None]


def p_of_fit(found: Sequence[int], shares: np.ndarray[Any, Any]) -> float:
    """Chi-square p of counts against shares; tokens expected fewer than five times count together."""
    counts = np.bincount(found, minlength=len(shares))
    expected = shares * len(found)
    assert not counts[shares == 0].any(), "a token outside the nucleus was drawn"
    large = expected >= 5
    observed = [*counts[large], counts[~large].sum()]
    wanted = [*expected[large], expected[~large].sum()]
    if wanted[-1] < 5:  # too few even together: to the smallest of the others
        observed, wanted = [*observed[:-2], sum(observed[-2:])], [*wanted[:-2], sum(wanted[-2:])]
    assert len(wanted) > 8, "too few classes for a test that could fail"
    return float(scipy.stats.chisquare(observed, wanted).pvalue)


SAMPLINGS = [(1.0, 1.0), (0.5, 1.0), (1.0, 0.8), (0.5, 0.8), (2.0, 0.9)]


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "top_p"), SAMPLINGS)
def test_first_tokens_are_as_frequent_as_a_plain_forward_says(
    tiny: Saved, temperature: float, top_p: float
) -> None:
    saved = tiny("llama", "bpe")
    shares = wanted_shares(saved.oracle, SHORT, temperature, top_p)
    uniform = math.log((shares > 0).sum())
    assert -(shares[shares > 0] * np.log(shares[shares > 0])).sum() < uniform - 0.1, "nearly flat"
    requests = samples_of(SHORT, range(N_SEEDS), n=1, temperature=temperature, top_p=top_p)
    found = first_tokens(generator_for(saved.folder, 500), requests)
    assert N_SEEDS == len(found)
    assert p_of_fit(found, shares) > 1e-4
    # The test has power: the neighbouring settings are refused on the same samples.
    for other in SAMPLINGS:
        if other != (temperature, top_p):
            wrong = wanted_shares(saved.oracle, SHORT, *other)
            wrong = (wrong + 1e-12) / (wrong + 1e-12).sum()  # outside its nucleus: rare, not refused at once
            assert p_of_fit(found, wrong) < 1e-4


FAMILIES = [
    ("llama", "llama2"),
    ("gpt2", "bpe"),
    ("mistral", "bpe-bos"),
    ("gemma3", "unigram"),
    ("gpt-neox", "bytes"),
]


def drawn_by_hand(oracle: Oracle, request: SampleRequest, ends: Sequence[int]) -> tuple[list[int], float]:
    """A sample by methods/texts#samples: batch 1, no cache, a token at a time; and its narrowest decision."""
    noise = np.random.Generator(np.random.SFC64(request.seed))
    ids, n_prompt, closest = list(oracle.encode(request.prompt.text)), 0, math.inf
    n_prompt = len(ids)
    while len(ids) < n_prompt + request.sampling.max_new_tokens:
        log_shares = oracle.next_log_probs(tuple(ids)).numpy() / request.sampling.temperature
        score = log_shares - np.log(noise.standard_exponential(len(log_shares)))
        second, first = np.sort(score)[-2:]
        closest = min(closest, first - second)
        ids.append(int(score.argmax()))
        if ids[-1] in ends:
            break
    return ids[n_prompt:], closest


@pytest.mark.parametrize(("architecture", "tokenizer"), FAMILIES)
def test_a_sample_is_the_largest_of_logits_and_its_own_noise_at_every_step(
    tiny: Saved, architecture: str, tokenizer: str
) -> None:
    saved = tiny(architecture, tokenizer)
    model = generator_for(saved.folder, 3)
    requests = samples_of(SHORT, [11, 12, 13], n=14, temperature=0.8)
    model.plan_samples(requests)
    model._load()
    found = model._new_ids(requests)
    for request, new in zip(requests, found, strict=True):
        wanted, closest = drawn_by_hand(saved.oracle, request, [saved.oracle.tokenizer.eos_token_id])
        assert closest > 1e-4, "this seed decides by float noise: take another"
        assert wanted == list(new or ())


def test_what_a_models_own_generation_config_asks_for_changes_no_sample(tiny: Saved, tmp_path: Path) -> None:
    saved = tiny("llama", "bpe")
    requests = samples_of(SHORT, range(12), n=24)
    plain = texts(answers(generator_for(saved.folder), requests))
    frequent = np.argsort(-wanted_shares(saved.oracle, SHORT, 1.0, 1.0))[:20].tolist()
    traps = (
        {"repetition_penalty": 5.0},
        {"suppress_tokens": frequent},
        {"begin_suppress_tokens": frequent},
        {"do_sample": True, "top_k": 2, "top_p": 0.1, "temperature": 0.1},
        {"no_repeat_ngram_size": 1, "min_new_tokens": 24, "bad_words_ids": [[i] for i in frequent]},
        {"num_beams": 3, "num_return_sequences": 1, "max_length": 3, "length_penalty": 2.0},
        {"forced_eos_token_id": frequent[0], "sequence_bias": [[[frequent[0]], 9.0]]},
    )
    for i, trap in enumerate(traps):
        folder = altered(saved, tmp_path / str(i), **trap)
        assert plain == texts(answers(generator_for(folder), requests)), trap


def test_noise_is_never_infinite() -> None:
    """numpy's float32 exponentials are exactly 0 once in 2^23: eight times in these samples."""
    noise = GumbelNoise(range(8), Sampling())
    for _ in range(8):
        noise.sample([(0, torch.zeros((8, 1 << 20)))], [True] * 8)
    assert not any(noise.broken)


def test_noise_follows_the_gumbel_distribution() -> None:
    noise = GumbelNoise([5], Sampling())
    noise.sample([(0, torch.zeros((1, 200_000)))], [True])
    assert scipy.stats.kstest(noise._buffers.sums, "gumbel_r").pvalue > 1e-4


# --- where a text ends ------------------------------------------------------------------------------------


def ending_often(saved: Tiny, target: Path) -> tuple[Path, list[int]]:
    """A model that lists tokens of about a tenth of the probability as ends, beside its tokenizer's."""
    shares = wanted_shares(saved.oracle, SHORT, 1.0, 1.0)
    order = np.argsort(-shares)[3:]
    some = order[np.cumsum(shares[order]) < 0.1].tolist()
    assert len(some) > 1
    return altered(saved, target, eos_token_id=some), [*some, saved.oracle.tokenizer.eos_token_id]


def test_every_listed_end_and_the_tokenizers_own_stops_a_text(tiny: Saved, tmp_path: Path) -> None:
    saved = tiny("llama", "bpe")
    folder, ends = ending_often(saved, tmp_path / "ends")
    # Where the model lists no end of the tokenizer's, that one still ends a text.
    model = generator_for(folder, 500)
    requests = samples_of(SHORT, range(500), n=12)
    model.plan_samples(requests)
    model._load()
    assert sorted(ends) == sorted(model._ends)
    found = answers(model, requests)
    stopped, last = 0, Counter[int]()
    rows = {r.key: new for r, new in zip(requests, model._new_ids(requests), strict=True)}
    for key, answer in found.items():
        assert isinstance(answer, Sample)
        new = rows[key]
        assert new is not None
        assert len(new) == answer.answered.new_tokens
        assert len(saved.oracle.encode(SHORT)) == answer.answered.prompt_tokens
        assert not set(new[:-1]) & set(ends)
        last[new[-1]] += 1
        if new[-1] in ends:
            stopped += 1
            assert "stop" == answer.finish
        else:
            assert ("length", 12) == (answer.finish, len(new))
    assert 50 < stopped < 450
    assert len(set(ends) & set(last)) > 1


def test_a_sample_is_the_same_whatever_its_neighbours_and_when_they_end(tiny: Saved, tmp_path: Path) -> None:
    folder, _ = ending_often(tiny("gemma3", "bpe"), tmp_path / "ends")
    model = generator_for(folder, 8)
    kept = samples_of(SHORT, [5], n=30)
    found = set()
    lengths = set()
    for i in range(12):
        others = samples_of(SHORT, range(100 + 7 * i, 107 + 7 * i), n=30)
        batch = [*others[: i % 8], *kept, *others[i % 8 :]]
        answered = answers(model, batch)
        mine = answered[kept[0].key]
        assert isinstance(mine, Sample)
        found.add((mine.text, mine.finish, mine.answered.new_tokens))
        lengths |= {a.answered.new_tokens for a in answered.values() if isinstance(a, Sample)}
    assert 1 == len(found)
    assert len(lengths) > 5, "the neighbours must end at different times"


@pytest.mark.parametrize(("architecture", "tokenizer"), FAMILIES)
def test_prompts_of_one_length_share_a_batch_and_change_no_text(
    tiny: Saved, architecture: str, tokenizer: str
) -> None:
    """Five samples of each of many prompts, as in a batch, are one batch."""
    saved = tiny(architecture, tokenizer)
    # The same tokens in another order: one length, whatever the tokenizer.
    ids = saved.oracle.encode(SHORT)
    prompts = [Prompt(f"{SHORT} {i}", "completion") for i in range(6)]
    model, alone = (generator_for(saved.folder, size) for size in (30, 5))
    for generator in (model, alone):
        for i, prompt in enumerate(prompts):
            generator._prompts[prompt] = prompt.text, (ids[0], *ids[1 + i :], *ids[1 : 1 + i])
    requests = [request for prompt in prompts for request in samples_of(prompt, range(5))]
    (batch,) = model.plan_samples(requests).batches
    assert 30 == len(batch)
    apart: dict[str, str] = {}
    for start in range(0, 30, 5):
        apart |= texts(answers(alone, requests[start : start + 5]))
    assert apart == texts(answers(model, requests))
    assert len(set(apart.values())) > 5, "the prompts must matter, not the seeds alone"


# --- text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", ["bpe", "bpe-bos", "llama2", "unigram", "bytes"])
def test_prompt_and_text_are_what_the_tokens_say_together(tiny: Saved, tokenizer: str) -> None:
    """The leading space of a text is kept: SentencePiece drops it where a text is decoded alone."""
    saved = tiny("llama", tokenizer)
    model = generator_for(saved.folder, 40)
    requests = samples_of(SHORT, range(40), n=6)
    found = texts(answers(model, requests))
    prompt = saved.oracle.encode(SHORT)
    shown = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    n_spaces = 0
    for request, new in zip(requests, model._new_ids(requests), strict=True):
        whole = saved.oracle.tokenizer.decode([*prompt, *(new or ())], **shown)
        assert whole == SHORT + found[request.key]
        n_spaces += found[request.key].startswith(" ")
    if tokenizer != "bytes":
        assert n_spaces > 0


def test_chat_prompts_are_rendered_by_the_models_template(tiny: Saved) -> None:
    saved = tiny("llama", "llama2", chat_template=CHAT_TEMPLATE)
    model = generator_for(saved.folder)
    assert "chat" in model.identity.formats
    assert ("instruct", True) == (model.identity.tuning, model.identity.takes_system)
    plain = Prompt("Generate a persona of a nurse", "chat")
    with_system = Prompt(plain.text, "chat", system="Be brief.")
    [one], [other] = (list(answers(model, samples_of(p, [1])).values()) for p in (plain, with_system))
    assert isinstance(one, Sample)
    assert isinstance(other, Sample)
    assert saved.oracle.chat(("user", plain.text)) == one.prompt
    assert saved.oracle.chat(("system", "Be brief."), ("user", plain.text)) == other.prompt
    # The template writes the BOS; the tokenizer puts none before it a second time.
    ids = saved.oracle.encode(one.prompt, add_special_tokens=False)
    assert len(ids) == one.answered.prompt_tokens
    bos = saved.oracle.tokenizer.bos_token_id
    assert [bos] == [i for i in ids if i == bos]


# --- before anything is drawn ------------------------------------------------------------------------------


def test_a_prompt_and_its_answer_beyond_the_models_positions_are_refused_by_the_plan(tiny: Saved) -> None:
    saved = tiny("gpt2", "bpe")
    model = generator_for(saved.folder)
    room = POSITIONS - len(saved.oracle.encode(SHORT))
    model.plan_samples(samples_of(SHORT, [1], n=room))
    requests = [
        *samples_of("Q:", [1], n=room),
        *samples_of(SHORT, [1, 2], n=room),
        *samples_of(SHORT, [3], n=room + 1),
    ]
    with pytest.raises(ModelError, match=f"make {POSITIONS + 1}, the model has {POSITIONS}") as caught:
        model.plan_samples(requests)  # the prompt is known from the plan before
    assert requests[-1].key == caught.value.request_key
    assert model._model is None, "nothing is loaded for a plan"


def test_an_empty_prompt_is_refused_by_the_plan(tiny: Saved) -> None:
    with pytest.raises(ModelError, match="no tokens"):
        generator_for(tiny("llama", "bpe").folder).plan_samples(samples_of("", [1]))


# --- memory -------------------------------------------------------------------------------------------------


def test_a_batch_too_large_for_memory_is_asked_in_halves_and_answered_once(
    tiny: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = generator_for(tiny("llama", "bpe").folder, 8)
    requests = samples_of(SHORT, range(16))
    before = texts(answers(model, requests))
    whole, sizes = model._new_ids, []

    def sample(batch: Sequence[SampleRequest]) -> Any:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise torch.OutOfMemoryError("too large")
        return whole(batch)

    monkeypatch.setattr(model, "_new_ids", sample)
    seconds = model.estimate_seconds(100)
    assert seconds is not None
    assert [8, 4, 2, 2, 2, 2, 2] == sizes  # the last is timed
    assert 2 == model.batch_size
    model._batch_size = 8
    assert before == texts(answers(model, requests))
    assert 2 == model.batch_size

    def never(batch: Sequence[SampleRequest]) -> Any:
        raise torch.OutOfMemoryError("too large")

    monkeypatch.setattr(model, "_new_ids", never)
    with pytest.raises(ModelError, match="out of memory on cpu with one text"):
        answers(model, requests)


# --- the demo model -----------------------------------------------------------------------------------------

N_SAMPLES, N_TOKENS = 64, 20


BIOGRAPHY = "The following is the biography of a nurse.\n\nEarly life and career\n\n"


def demo_texts(
    demo: ModelFolder, batch_size: int, requests: Sequence[SampleRequest], dtype: Dtype = "auto"
) -> dict[str, str]:
    local = LocalOptions(device="cpu", dtype=dtype, batch_size=batch_size)
    model = TransformersGenerator(demo, label="demo-base", spec="demo-base", local=local)
    assert {batch_size} == {len(batch) for batch in model.plan_samples(requests).batches}
    return texts(answers(model, requests))


@pytest.mark.real_model
def test_samples_of_the_demo_model_hardly_depend_on_order_and_batch_size() -> None:
    require_demo_base()
    from biaskit.models.huggingface.demo import find_demo

    requests = samples_of(BIOGRAPHY, range(N_SAMPLES), n=N_TOKENS)
    large = demo_texts(find_demo("demo-base"), 64, requests)
    small = demo_texts(find_demo("demo-base"), 16, random.Random(8).sample(requests, N_SAMPLES))
    assert len(set(large.values())) > 0.9 * N_SAMPLES
    equal = sum(large[key] == small[key] for key in large)
    assert equal >= 0.95 * N_SAMPLES, f"{equal} of {N_SAMPLES} samples are equal at batch 16 and 64"


EARLIER = {
    "demo": {1: "afe8baaaa7180aee", 4: "074fc1a333eefb9c", 64: "58383143d5d4c71c"},
    "demo-base": {1: "3d4faeaefb17462c", 4: "741800bde1b1276f", 64: "3ec70dd8073ed64c"},
}
"""Of the texts that `generate` of transformers drew in float32, before the sampler had a loop of its own."""


@pytest.mark.real_model
@pytest.mark.parametrize("batch_size", [1, 4, 64])
@pytest.mark.parametrize(("name", "require"), [("demo", require_demo), ("demo-base", require_demo_base)])
def test_texts_of_the_demo_models_are_what_they_always_were(
    name: str, require: Callable[[], object], batch_size: int
) -> None:
    require()
    from biaskit.models.huggingface.demo import find_demo

    requests = samples_of(BIOGRAPHY, range(min(2 * batch_size, 64)), n=N_TOKENS)
    found = demo_texts(find_demo(name), batch_size, requests, "float32")
    whole = "\0".join(found[request.key] for request in requests)
    assert EARLIER[name][batch_size] == hashlib.sha256(whole.encode()).hexdigest()[:16]


# --- layers and caches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (16, 1), (4, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_onednn_gives_the_numbers_of_the_layer(shape: tuple[int, int], bias: bool) -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(24, 333, bias=bias))
    states = torch.randn(*shape, 24)
    with torch.inference_mode():
        expected = model(states)
        use_onednn(model)
        assert "forward" in vars(model[0])
        assert torch.allclose(model(states), expected, rtol=0, atol=1e-5)


def test_layers_of_their_own_keep_their_forward() -> None:
    class Own(torch.nn.Linear):
        pass

    hooked = torch.nn.Linear(8, 9)
    vars(hooked)["forward"] = other = hooked.forward
    own = Own(8, 9)
    use_onednn(torch.nn.Sequential(own, hooked))
    assert "forward" not in vars(own)
    assert hooked.forward is other


def plain_texts(model: TransformersGenerator, monkeypatch: pytest.MonkeyPatch, requests: Any) -> Any:
    """What a generator draws from whole logits, with the cache of transformers."""
    with monkeypatch.context() as patched:
        patched.setattr("biaskit.models.huggingface.generator.cut_head", lambda *_: None)
        patched.setattr("biaskit.models.huggingface.generator.use_onednn", lambda *_: None)
        patched.setattr("biaskit.models.huggingface.generator.keep_in_buffers", lambda *_: None)
        return answers(model, requests)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "architecture", ["llama", "gpt2", "mistral", "gemma3", "gemma2", "cohere", "granite"]
)
def test_slices_and_buffers_change_no_text(
    tiny: Saved, monkeypatch: pytest.MonkeyPatch, architecture: str, dtype: Any
) -> None:
    """Also where windows of eight tokens are passed, and where logits are scaled and capped."""
    monkeypatch.setattr("biaskit.models.huggingface.head.SLICE_ELEMENTS", 900)
    local = LocalOptions(device="cpu", dtype=dtype, batch_size=9)
    folder = check_folder(tiny(architecture, "bpe").folder)
    one, other = (TransformersGenerator(folder, label="t", spec="t", local=local) for _ in range(2))
    requests = [*samples_of(SHORT, range(9), n=40), *samples_of(OTHER, range(4), n=20, top_p=0.9)]
    found = answers(one, requests)
    scaled = architecture in ("gemma2", "cohere", "granite")
    assert (one._head is None) == (scaled and dtype == "bfloat16")
    assert texts(plain_texts(other, monkeypatch, requests)) == texts(found)
    assert other._head is None


def test_a_head_that_is_not_understood_is_left_whole(tiny: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = tiny("llama", "bpe")
    model = generator_for(saved.folder)
    load = model._weights

    def doubled(ids: Any) -> Any:
        loaded = load(ids)
        plain = type(loaded).forward

        class Doubled(type(loaded)):  # type: ignore[misc]
            def forward(self, *args: Any, **options: Any) -> Any:
                out = plain(self, *args, **options)
                out.logits = out.logits * 2
                return out

        loaded.__class__ = Doubled
        return loaded

    monkeypatch.setattr(model, "_weights", doubled)
    requests = samples_of(SHORT, range(8), n=20)
    halved = samples_of(SHORT, range(8), n=20, temperature=0.5)
    found = answers(model, requests)
    assert model._head is None
    wanted = answers(generator_for(saved.folder), halved)
    assert [*texts(wanted).values()] == [*texts(found).values()]


@pytest.mark.parametrize("window", [None, 5, 100])
def test_a_buffered_layer_gives_what_its_own_update_gives(window: int | None) -> None:
    torch.manual_seed(2)
    make = DynamicLayer if window is None else partial(DynamicSlidingWindowLayer, window)
    cache, plain = (Cache(layers=[make()]) for _ in range(2))
    keep_in_buffers(cache, 16)
    for n in (7, 1, 1, 2, 1, 1, 3):
        keys, values = torch.randn(2, 3, 2, n, 4)
        assert cache.layers[0].get_mask_sizes(n) == plain.layers[0].get_mask_sizes(n)
        for one, other in zip(cache.update(keys, values, 0), plain.update(keys, values, 0), strict=True):
            assert torch.equal(one, other)
        assert torch.equal(cache.layers[0].keys, plain.layers[0].keys)
        assert torch.equal(cache.layers[0].values, plain.layers[0].values)
        assert cache.get_seq_length() == plain.get_seq_length()
