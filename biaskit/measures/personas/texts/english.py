"""Whether texts are in English: the rules of association read no other language (methods/texts#english)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from biaskit.common.wording import count
from biaskit.measurement import words
from biaskit.tables.reasons import NOT_ENGLISH

_SAYS: Mapping[str, str] = words("personas")["english"]
FUNCTION_WORDS = frozenset(_SAYS["function_words"].split())
"""Words that English cannot do without and that its neighbours do not write; ours."""

LEAST_SHARE = 0.03
"""Of a text's words: 1,348 personas by text-davinci-003 have 0.097 or more, other languages 0 to 0.02."""
FEWEST_WORDS = 30
"""A text or a file of fewer words is not judged: six words of English may hold none of these."""
MOST_FOREIGN = 0.1
"""Share of a model's texts that may be in another language: above it there is no share and no conclusion."""

_WORD = re.compile(r"[^\W\d_]+")


@dataclass(slots=True)
class EnglishEvidence:
    """How much of the texts of one model, or one file, is English; texts are added one at a time."""

    n_judged: int = 0  # texts of at least FEWEST_WORDS words
    n_foreign: int = 0  # those of them in which English function words are missing
    _n_words: int = 0  # of all texts, short ones too
    _n_english: int = 0

    def add(self, text: str) -> None:
        """Count the English function words of one text."""
        written = _WORD.findall(text.lower())
        english = sum(map(FUNCTION_WORDS.__contains__, written))
        self._n_words += len(written)
        self._n_english += english
        if len(written) >= FEWEST_WORDS:
            self.n_judged += 1
            self.n_foreign += english < LEAST_SHARE * len(written)

    @property
    def share(self) -> float | None:
        """English function words among all words; None without a word."""
        return self._n_english / self._n_words if self._n_words else None

    @property
    def read(self) -> bool:
        """Whether the rules can read these texts; also where there is too little to tell."""
        if self._n_words >= FEWEST_WORDS and self._n_english < LEAST_SHARE * self._n_words:
            return False
        return self.n_foreign <= MOST_FOREIGN * self.n_judged

    def record(self) -> Mapping[str, object]:
        """Return what analysis.json says of it."""
        return {"function_words": self.share, "n_judged": self.n_judged, "n_not_english": self.n_foreign}

    def note(self, label: str) -> str | None:
        """Warn of texts that are not in English; None where all that was judged is."""
        if self.read and not self.n_foreign:
            return None
        said = _SAYS["some" if self.read else "all"]
        foreign = f"{self.n_foreign:,} of {count(self.n_judged, 'text')} of {FEWEST_WORDS} or more words"
        rule = f"under {100 * LEAST_SHARE:g} % a text counts as not English"
        return said.format(label, NOT_ENGLISH, 100 * (self.share or 0), foreign=foreign, rule=rule)
