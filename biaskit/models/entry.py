"""A model as a run opened it: its entry in the run's manifest, by which a later start opens it again."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema, PlainSerializer
from pydantic_core.core_schema import str_schema

from biaskit.records import Estimator, ModelIdentity, PromptFormat

_Format = Annotated[PromptFormat, GetPydanticSchema(lambda *_: str_schema())]
"""Any text: a format that is unknown to this version stays readable; "" of imported texts."""


def _with_name(stated: Any) -> Any:
    return {"name": stated} if isinstance(stated, str) else stated


_Estimator = Annotated[Estimator, BeforeValidator(_with_name), PlainSerializer(Estimator.in_key)]


class Continuations(BaseModel):
    """By what the keys of texts beside the probabilities were made."""

    model_config = ConfigDict(extra="allow")

    fingerprint: str
    estimator: _Estimator


class Way(BaseModel):
    """A way to ask a model, beside the one of its run."""

    model_config = ConfigDict(extra="allow", frozen=True)

    prompt_format: _Format
    system_prompt: str  # what it is called
    wording: str
    estimator: _Estimator | None = None  # None: not possible
    reason: str = ""  # why not

    @property
    def scope(self) -> dict[str, str]:
        """The columns of a table that name it."""
        return {name: getattr(self, name) for name in ("prompt_format", "system_prompt", "wording")}

    @property
    def name(self) -> str:
        """Its name in rows."""
        return ", ".join(self.scope.values())


class ModelEntry(BaseModel):
    """What a run knows of a model; fields are in the file's order, one that was never set is left out."""

    model_config = ConfigDict(extra="allow")

    abilities: dict[str, Any] = {}  # what was measured of an API's endpoint
    spec: str
    fingerprint: str
    tuning: str
    where: str
    prompt_format: _Format
    details: dict[str, str | int | float | bool | None]
    estimator: _Estimator | None = None  # None: texts
    batch_size: Annotated[int, Field(ge=1)] | None = None  # None: auto, and not measured yet
    notes: list[str] | None = None  # None: not asked yet
    reach: dict[str, dict[str, float]] = {}  # bias type → prompt format → coverage, as tried
    continuations: Continuations | None = None
    ways: list[Way] | None = None

    @classmethod
    def of(cls, identity: ModelIdentity, prompt_format: PromptFormat, **more: Any) -> ModelEntry:
        """Describe a model that was opened; `more`: other fields."""
        named = {name: getattr(identity, name) for name in ("spec", "fingerprint", "tuning", "where")}
        if identity.abilities is not None:
            named["abilities"] = dict(identity.abilities)
        return cls(**named, prompt_format=prompt_format, details=dict(identity.details), **more)

    @property
    def estimator_name(self) -> str:
        """Its estimator with the settings, such as top-k(k=20); "" of texts."""
        return "" if self.estimator is None else str(self.estimator)

    @property
    def estimator_key(self) -> object:
        """Its estimator as keys of rows hold it."""
        return None if self.estimator is None else self.estimator.in_key()

    @property
    def samples(self) -> int | None:
        """Samples of a batch; None where nothing is drawn."""
        return None if self.estimator is None else self.estimator.samples
