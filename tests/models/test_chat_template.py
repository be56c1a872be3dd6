# ruff: noqa: E501
"""Chat templates: what transformers renders, with the date of the study, and one line for any that fails."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.tiny_models import CHAT_TEMPLATE, build_tokenizer

from biaskit.errors import ModelError
from biaskit.models.huggingface.rendering import Renderer

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
    "memory": "{{ ('x' * 100000000) * 10000000000 }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "long refusal": "{{ raise_exception('no' * 5000000) }}",
    "escape": "{{ raise_exception('\x1b[2J\u202e') }}",
    "attributes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "syntax": "{% if %}",
    "undefined": "{{ a.b.c }}",
}


@pytest.mark.parametrize("source", SAME)
@pytest.mark.parametrize("clock", ["", "{#- strftime_now #}"])
def test_a_template_reads_as_in_transformers(source: str, clock: str) -> None:
    tokenizer: Any = build_tokenizer("bpe-bos", source + clock)
    expected = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
    assert expected == Renderer(tokenizer)._template(MESSAGES)


def test_the_clock_of_templates_is_a_setting() -> None:
    tokenizer = build_tokenizer("bpe-bos", LIKE_LLAMA)
    fixed = Renderer(tokenizer)
    assert "<s>Today Date: 26 Jul 2024\n" == fixed._template(MESSAGES)
    assert "<s>Today Date: 01 Feb 2026\n" == Renderer(tokenizer, "2026-02-01")._template(MESSAGES)
    assert fixed.reads_clock
    assert not Renderer(build_tokenizer("bpe-bos", CHAT_TEMPLATE)).reads_clock


@pytest.mark.parametrize("name", HARM)
def test_a_template_that_fails_is_one_line(name: str) -> None:
    renderer = Renderer(build_tokenizer("bpe-bos", HARM[name]))
    assert not renderer.takes_system
    with pytest.raises(ModelError, match="refuses this conversation") as caught:
        renderer._template(MESSAGES)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


OWN = "{{ '<|system|>You are Tiny.\n' + eos_token }}"


@pytest.mark.parametrize(
    ("before", "after", "own"),
    [
        ("", "", ""),
        ("{% if messages[0]['role'] != 'system' %}" + OWN, "{% endif %}", "You are Tiny."),
        ("{{ '<|system|>Cutting Knowledge Date: 2023' + eos_token }}", "", "Cutting Knowledge Date: 2023"),
        ("{% if messages | length > 1 %}{{ raise_exception('one question') }}{% endif %}" + OWN, "", ""),
    ],
)
def test_a_templates_own_system_prompt_is_found(before: str, after: str, own: str) -> None:
    turns = CHAT_TEMPLATE.replace("{{ bos_token }}", "", 1)
    tokenizer: Any = build_tokenizer("bpe-bos", "{{ bos_token }}" + before + after + turns)
    assert own == Renderer(tokenizer).own_system


def test_a_model_without_a_template_has_no_system_prompt_of_its_own() -> None:
    assert "" == Renderer(build_tokenizer("bpe-bos", None)).own_system
