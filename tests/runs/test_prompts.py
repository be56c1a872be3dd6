"""Earlier rows whose prompt is not today's are named one by one (`runs/prompts.py`)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fakes.command import Cli

from biaskit.runs.prompts import earlier_prompts

TEMPLATE = (
    "{{ strftime_now('%d %b %Y') }}: {% for m in messages %}{{ m['role'] }} {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def test_a_template_that_prints_another_date_names_the_rows_it_changed(
    console: Cli, quick_folder: Path
) -> None:
    from fakes.tiny_models import save_model

    save_model(Path("m"), "llama", "bpe-bos", chat_template=TEMPLATE)
    asked = ("--jobs", "nurse,plumber", "--templates", "1-2", "--prompt-form", "chat-prefill")
    command = ("probe", "toy=hf:./m", *asked, "--out", "r", "--yes")
    first = console(*command)
    assert 0 == first.code, first.err
    assert "other prompts" not in console(*command).out
    said = console(*command, "--set", "template_date=2030-01-01")
    assert 0 == said.code, said.err
    text = " ".join((said.out + said.err).split())
    assert "toy is not the model it was" in text
    said_of = (
        r"toy: earlier rows that answer other prompts than today's: (?:\w+ template \d, \w+; ){3}and 5 more"
    )
    assert re.search(said_of, text), text[-3000:]


def test_a_model_with_other_weights_and_the_same_prompts_has_no_prompt_to_name(tmp_path: Path) -> None:
    row = {"model": "a", "bias_type": "explicit", "template_id": 1, "job": "nurse", "prompt": "Who?"}
    (tmp_path / "probe.jsonl").write_text(json.dumps({**row, "key": "k"}) + "\n")
    earlier = earlier_prompts(tmp_path, "probe", ["a"])["a"]
    earlier.compare([row, {**row, "job": "cook", "prompt": "Who else?"}])
    assert [] == earlier.notes()
    earlier.compare([{**row, "prompt": "Who?\n"}] * 2)
    assert ["a: earlier rows that answer other prompts than today's: explicit template 1, nurse."] == (
        earlier.notes()
    )
