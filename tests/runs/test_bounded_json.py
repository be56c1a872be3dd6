"""JSON whose numbers no float holds, or that is nested without end, wherever in a text it stands."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biaskit.inputs import MOST_DIGITS, MOST_NESTED, TooMuch, parse_json, parse_toml


@given(st.text(max_size=300), st.integers(MOST_DIGITS - 3, MOST_DIGITS + 60), st.text(max_size=80))
def test_a_long_number_is_found_wherever_it_stands(before: str, n_digits: int, after: str) -> None:
    text = json.dumps([before]) + " " * (len(after) % 7)
    text = f"[{text}, {'7' * n_digits}, {json.dumps(after)}]"
    if n_digits <= MOST_DIGITS:
        assert int("7" * n_digits) == parse_json(text)[1]
    else:
        with pytest.raises(TooMuch, match="digits"):
            parse_json(text)


@pytest.mark.parametrize("number", ["1e309", "-9E400", "1e+309", "[[1e999]]"])
def test_a_number_beyond_every_float_is_refused(number: str) -> None:
    with pytest.raises(TooMuch, match="1e308"):
        parse_json(f'{{"key": "x", "a": {number}}}')


@pytest.mark.parametrize(
    "text", ["1e999", "[1E+0400 ]", '{"a":-1.5e310\n}', '["3e123ab", 1e309,1]', "[1e309\t,2]"]
)
def test_a_number_beyond_every_float_is_found_by_what_follows_it(text: str) -> None:
    with pytest.raises(TooMuch, match="1e308"):
        parse_json(text.encode())


def test_an_exponent_of_toml_may_hold_low_lines() -> None:
    with pytest.raises(TooMuch, match="1e308"):
        parse_toml("a = 1e400_0")


@given(st.text("0123456789abcdef", min_size=32, max_size=64))
def test_a_digest_is_a_text(digest: str) -> None:
    assert [digest] == parse_json(json.dumps([digest]))


def test_a_text_of_digits_is_a_text() -> None:
    assert ["7" * 400, "1e999"] == parse_json(json.dumps(["7" * 400, "1e999"]))


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_nesting_has_an_end(pair: str) -> None:
    def nested(depth: int) -> str:
        opening = "[" if pair == "[]" else '{"a":'
        return opening * depth + "1" + pair[1] * depth

    parse_json(nested(MOST_NESTED))
    for depth in (MOST_NESTED + 1, 5_000):
        with pytest.raises(TooMuch, match="nested"):
            parse_json(nested(depth))


def test_many_brackets_side_by_side_are_no_nesting() -> None:
    rows = [{"a": [1, 2], "text": "[[[{{{"} for _ in range(MOST_NESTED)]
    assert rows == parse_json(json.dumps(rows))
