"""What a study of mentions asks: some texts of each job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from biaskit.measures.mentions.study import MentionsStudy

from biaskit.common.provenance import key_of
from biaskit.models.entry import ModelEntry
from biaskit.records import Prompt, SampleRequest, Sampling
from biaskit.runs.designs import describe_lists, read_study, sign_design
from biaskit.runs.manifest import StoredDesign
from biaskit.runs.merge import united

SAMPLING = Sampling(max_new_tokens=40)


@dataclass(frozen=True, slots=True)
class MentionsDesign:
    """The jobs that texts are about."""

    study: MentionsStudy
    jobs: tuple[str, ...]
    sources: dict[str, str]

    def describe(self) -> dict[str, Any]:
        """Describe everything that was asked."""
        return describe_lists(self, jobs=list(self.jobs))

    def question(self) -> dict[str, Any]:
        """List what must agree for two commands to share one folder."""
        return {"study": self.study.name}

    def sign(self, models: Mapping[str, ModelEntry]) -> str:
        """Write the line that stands under every table."""
        return sign_design(self.study, models, self.describe()["digest"], {"word": self.study.word})

    def requests(self, fingerprint: str) -> list[tuple[str, SampleRequest]]:
        """Make the requests of a model, each with its job."""
        made = []
        for job in self.jobs:
            for number in range(self.study.texts):
                key = key_of(["mentions", fingerprint, job, number])
                prompt = Prompt(f"Write about a {job}.", "raw")
                made.append((job, SampleRequest(key, prompt, SAMPLING, seed=number, number=number)))
        return made


def resolve(study: MentionsStudy) -> MentionsDesign:
    """Read the jobs of a study."""
    return MentionsDesign(study, tuple(study.jobs.split(",")), {})


class Stored(StoredDesign):
    """A study of mentions in a manifest."""

    jobs: tuple[str, ...]


def read(resolved: Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> MentionsDesign:
    """Read the design that a manifest describes."""
    stored = Stored.model_validate(resolved)
    return MentionsDesign(cast("MentionsStudy", read_study(resolved, overrides)), stored.jobs, stored.sources)


def unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Unite two designs of one study."""
    return united(first, second, "jobs")
