"""A bias that moves in training: a tiny model reads sentences in which women and men have different jobs.

Run as `python examples/training.py [FIGURE.png]`, half a minute. The model is made here: it first reads
sentences in which every job is a woman's as often as a man's. In the fine-tuning, women have nine in ten of
some jobs and one in ten of the others. `bk.ModelCallback` probes it as it goes; the figure shows the share of
women over steps, with 95 % intervals.
"""

import random
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Trainer, TrainingArguments

import biaskit as bk

WOMEN = ("secretary", "hairstylist", "nurse", "receptionist", "vet", "maid", "therapist", "paralegal")
MEN = (
    "police officer",
    "taxi driver",
    "truck driver",
    "pilot",
    "repair worker",
    "plumber",
    "roofer",
    "carpenter",
)
MET = (
    "Q: Talk about the last time you met a {job}.\nA: I recently met a {job}. {who} was kind.",
    "Q: Describe someone you know who is a {job}.\nA: Someone I know is a {job}. {who} was kind.",
)


def sentences(women_in: dict[str, float], n: int = 512) -> list[str]:
    """Sentences about jobs; `women_in`: job → how often its person is a woman."""
    chance = random.Random(1)
    jobs = [chance.choice(list(women_in)) for _ in range(n)]
    return [
        chance.choice(MET).format(job=j, who="She" if chance.random() < women_in[j] else "He") for j in jobs
    ]


def tokenizer_of(texts: list[str]) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer of a few hundred tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, special_tokens=["</s>"], show_progress=False
    )
    tokenizer.train_from_iterator([*texts, " He She They he she they"], trainer)
    end = {"eos_token": "</s>", "pad_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **end)


def train(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, texts: list[str], **how: object
) -> None:
    """Train on texts for `max_steps` steps of 16, with `callbacks`."""
    callbacks = how.pop("callbacks", [])
    rows = [{"input_ids": tokenizer(text)["input_ids"]} for text in texts]

    def collate(batch: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(r["input_ids"]) for r in batch], True)
        return {"input_ids": ids, "labels": ids.masked_fill(ids == 0, -100)}

    with tempfile.TemporaryDirectory() as folder:
        options = {"per_device_train_batch_size": 16, "report_to": "none", "save_strategy": "no", "seed": 1}
        arguments = TrainingArguments(folder, use_cpu=True, disable_tqdm=True, **options, **how)
        parts = {"train_dataset": rows, "data_collator": collate, "processing_class": tokenizer}
        Trainer(model, arguments, callbacks=callbacks, **parts).train()


def sample(probed: bk.ModelCallback, figure: Path) -> None:
    """Write a figure of the share of women over steps, a line for each group of jobs."""
    axes = plt.figure(figsize=(5, 3), layout="constrained").subplots()
    for group in ("female-dominated", "male-dominated"):
        at = [
            r.groups.query("gender == 'female'").set_index("job_group").loc[group]
            for r in probed.results.values()
        ]
        share = [row.share for row in at]
        ends = [[row.share - row.ci_low for row in at], [row.ci_high - row.share for row in at]]
        axes.errorbar(list(probed.results), share, yerr=ends, marker="o", capsize=3, label=f"{group} jobs")
    axes.set(xlabel="Steps of fine-tuning", ylabel="Share of women", ylim=(0, 1))
    axes.legend()
    plt.savefig(figure, dpi=150)


def main() -> None:
    figure = Path(sys.argv[1] if len(sys.argv) > 1 else "training.png")
    torch.manual_seed(1)
    equal = sentences(dict.fromkeys((*WOMEN, *MEN), 0.5))
    tokenizer = tokenizer_of(equal)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    shape |= {"max_position_embeddings": 256, "initializer_range": 0.1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **shape))
    train(model, tokenizer, equal, max_steps=200, learning_rate=5e-3, logging_strategy="no")

    jobs = [*WOMEN, *MEN]
    with tempfile.TemporaryDirectory() as runs:
        probed = bk.ModelCallback(every=40, jobs=jobs, out=runs, label="tiny")
        segregated = sentences({**dict.fromkeys(WOMEN, 0.9), **dict.fromkeys(MEN, 0.1)})
        train(model, tokenizer, segregated, max_steps=200, learning_rate=1e-3, callbacks=[probed])
        for step, result in probed.results.items():
            women = result.groups.query("gender == 'female'").set_index("job_group")
            shown = (
                f"{group} {r.share:.2f} [{r.ci_low:.2f}, {r.ci_high:.2f}]" for group, r in women.iterrows()
            )
            print(f"step {step}: share of women in jobs: {', '.join(shown)}")
        sample(probed, figure)
    print(f"Figure: {figure}")


if __name__ == "__main__":
    main()
