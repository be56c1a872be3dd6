# ruff: noqa: E501
"""Chat templates: rendered as transformers does, in a process that ends when it should (issue 13)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.tiny_models import CHAT_TEMPLATE, build_tokenizer

from biaskit.errors import ModelError
from biaskit.models.huggingface import template as module
from biaskit.models.huggingface.template import MOST_CHARACTERS, ChatTemplate, TemplateRefused

MESSAGES = [
    {"role": "system", "content": "Be brief. <&>\u202e"},
    {"role": "user", "content": 'Who is the "nurse"?\n\nWho?'},
    {"role": "assistant", "content": "É\U0001f600 they\ud800"},
]
LIKE_LLAMA = (
    "{{- bos_token }}{%- if not date_string is defined %}{%- set date_string = strftime_now('%d %b %Y') %}"
    "{%- endif %}Today Date: {{ date_string }}\n\n"
)
SAME = [
    *(CHAT_TEMPLATE, "{{ messages | tojson(indent=2) }}", "x{{ eos_token }}"),
    "{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{{ m['content'] | trim }}{% endfor %}",
    "{% set ns = namespace(found=false) %}{% for m in messages %}{% set ns.found = true %}{% endfor %}{{ ns.found }}",
    "{% generation %}{{ messages[0].content | upper }}{% endgeneration %}\n    {%- if true %}\n  a\n  {% endif %}",
    "{{ dict(a=1) }}{{ messages | map(attribute='role') | join(',') }}{{ add_generation_prompt }}{{ tools }}",
    "{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(messages[1].content) }}{{ tools is none }}{{ documents is none }}",
    "{% if messages[0].role == 'system' %}{{ messages[0]['content'].split('.')[0] }}{% endif %}{{ missing }}",
]  # fmt: skip
HARM = {
    "power": "{{ 10**(10**8) }}",
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "memory": "{{ ('x' * 100000000) * 100000 }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "long": "{{ 'x' * 20000000 }}",
    "refusal": "{{ raise_exception('no' * 5000000) }}",
    "escape": "{{ raise_exception('\x1b[2J\u202e') }}",
    "attributes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "digits": "{{ 7 ** 10000000 }}",
    "syntax": "{% if %}",
    "deep": "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "regex": "{{ ('a' * 100000) | wordwrap(1) | length }}{{ 'x' | center(10000000000) }}",
    "undefined": "{{ a.b.c }}",
    "nothing": "",
}


@pytest.mark.parametrize("source", SAME)
def test_a_template_reads_as_in_transformers(source: str) -> None:
    tokenizer: Any = build_tokenizer("bpe-bos", source)
    template = ChatTemplate(tokenizer.get_chat_template(), tokenizer.special_tokens_map)
    try:
        expected = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
        assert expected == template.render(MESSAGES)
    finally:
        template.close()


def test_the_clock_of_templates_is_a_setting() -> None:
    fixed = ChatTemplate(LIKE_LLAMA, {"bos_token": "<s>"})
    assert "<s>Today Date: 26 Jul 2024\n" == fixed.render(MESSAGES)
    other = ChatTemplate(LIKE_LLAMA, {"bos_token": "<s>"}, "2026-02-01")
    assert "<s>Today Date: 01 Feb 2026\n" == other.render(MESSAGES)
    assert fixed.reads_clock
    assert not ChatTemplate(CHAT_TEMPLATE, {}).reads_clock


@pytest.mark.parametrize("name", HARM)
def test_a_harmful_template_is_one_line(name: str) -> None:
    template = ChatTemplate(HARM[name], {})
    started = time.monotonic()
    text, said = "", ""
    try:
        text = template.render(MESSAGES)
    except (ModelError, TemplateRefused) as error:
        said = str(error)
    assert len(said) < 400
    assert said.isprintable()
    assert len(text) <= MOST_CHARACTERS
    assert said or name in ("nothing", "regex")
    assert time.monotonic() - started < 5
    if template._hung:  # it is not asked again, and nothing waits again
        with pytest.raises(ModelError, match="did not end within 1 s"):
            template.render(MESSAGES)
        assert time.monotonic() - started < 5
    template.close()


def test_a_process_ends_with_its_owner() -> None:
    template = ChatTemplate(CHAT_TEMPLATE, {})
    template.render(MESSAGES)
    assert template._process is not None
    end = template._process.end
    assert end.alive
    del template
    assert not end.alive


def test_what_a_process_is_given_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-value")
    seen: list[Any] = []
    popen = subprocess.Popen

    def noting(*arguments: Any, **options: Any) -> Any:
        seen.append(options["env"])
        return popen(*arguments, **options)

    monkeypatch.setattr(module.subprocess, "Popen", noting)
    template = ChatTemplate(CHAT_TEMPLATE, {})
    template.render(MESSAGES)
    template.close()
    assert seen
    assert not any("OPENAI" in name or "sk-" in value for given in seen for name, value in given.items())


SCRIPT = """
import sys
from biaskit.models.huggingface import template
template.SECONDS = 60.0
print("begins", flush=True)
template.ChatTemplate("{{ 10**(10**8) }}", {}).render([{"role": "user", "content": "x"}])
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_template_that_holds_on_can_be_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], **pipes) as asked:
        assert asked.stdout is not None
        asked.stdout.readline()
        time.sleep(1.0)
        os.kill(asked.pid, number)
        started = time.monotonic()
        asked.wait(timeout=10)
    assert time.monotonic() - started < 5
