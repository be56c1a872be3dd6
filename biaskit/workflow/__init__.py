"""What a command and a notebook both do: resolve, ask, analyse, compare, and hand back a result."""

from biaskit.workflow.generation import (
    RECORDED,
    PersonasResult,
    analyze_texts,
    import_texts,
    personas,
    recorded_run,
)
from biaskit.workflow.probing import ProbeResult, probe, score_continuations
from biaskit.workflow.stored import analyse, analysis_keys, describe_run, load, merge, result_of

__all__ = [
    "RECORDED",
    "PersonasResult",
    "ProbeResult",
    "analyse",
    "analysis_keys",
    "analyze_texts",
    "describe_run",
    "import_texts",
    "load",
    "merge",
    "personas",
    "probe",
    "recorded_run",
    "result_of",
    "score_continuations",
]
