"""Genders from codes such as F, w or non-binary: one reading for files, DataFrames and lists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from biaskit.common.files import toml_beside
from biaskit.corpora.sources import shown
from biaskit.errors import CorpusError, StudyError, nearest

_CODES: Mapping[str, Sequence[str]] = toml_beside(__file__)
_CODE = re.compile(r"[^.=\x00-\x1f\x7f]{1,40}")  # what a dotted key of --set can hold
NO_CODES: Mapping[str, str] = {}


class GenderCodes:
    """Gender codes and what they mean: `female`, `male`, `nonbinary` or None, "no gender".

    Case and the white space around a code do not count; an empty one is None. The argument `codes` (the study
    key `gender_codes`) takes precedence; it maps to female, male, nonbinary, or to none or "" for "no
    gender", and a wrong value in it is a `StudyError`.
    """

    def __init__(self, codes: Mapping[str, str] = NO_CODES) -> None:
        mapped: dict[str, str | None] = {}
        for code, gender in codes.items():
            if gender not in (*_CODES, "", "none"):
                raise StudyError(
                    f"gender_codes: {shown(code)} = {shown(gender)} is not a gender."
                    f"{nearest(str(gender), _CODES)} Known: {', '.join(_CODES)}, none (no gender)."
                )
            folded, value = _folded(str(code)), gender if gender in _CODES else None
            if mapped.setdefault(folded, value) != value:
                raise StudyError(
                    f"gender_codes: {shown(code)} is there twice, case aside, with two genders. Keep one."
                )
        self._genders: Mapping[str, str | None] = {
            "": None,
            **{code: gender for gender, synonyms in _CODES.items() for code in synonyms},
            **mapped,
        }

    def __contains__(self, code: str) -> bool:
        return _folded(code) in self._genders

    def __getitem__(self, code: str) -> str | None:
        """Return the gender of a code; an unknown one ("NA", "None") is a `CorpusError`, never a guess."""
        if code not in self:
            raise CorpusError(f"The gender code {shown(code)} is not known. {how_to_map([code])}")
        return self._genders[_folded(code)]


def _folded(code: str) -> str:
    return code.strip().casefold()


def how_to_map(codes: Iterable[str]) -> str:
    """Say what the user can type to map codes."""
    # Never with a value filled in: pasted as it stands it would turn men into women.
    ways = [f"--set {shlex.quote(f'gender_codes.{code}=VALUE')}" for code in codes if _CODE.fullmatch(code)]
    ways.append('"CODE" = "VALUE" under [gender_codes] of a study file')
    return f"Map each with {' or '.join(ways)}; VALUE: female, male, nonbinary or none (no gender)."
