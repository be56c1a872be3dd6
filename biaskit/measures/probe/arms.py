"""The arms of a probe: what the cells of one block of jobs and templates have in common."""

from __future__ import annotations

from biaskit.stats.arms import Arm
from biaskit.stats.contrasts import Scope


def scope_of(arm: Arm, contrast: str) -> Scope:
    """Scope a row of the prober within one arm: what is not contrasted is the same on both sides."""
    number = str(arm.instruction_id)
    where = arm.bias_type, arm.setting, arm.prompt_form
    return Scope("probe", contrast, arm.model, arm.model, *where, number, number)
