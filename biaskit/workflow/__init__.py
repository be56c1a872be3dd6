"""What a command and a notebook both do: resolve, ask, analyse, compare, and hand back a result."""

from biaskit.workflow.calibrating import CalibrationResult, calibrate
from biaskit.workflow.comparing import ComparisonResult, compare
from biaskit.workflow.doctoring import Examination, doctor
from biaskit.workflow.functions import marked_words
from biaskit.workflow.generation import (
    RECORDED,
    PersonasResult,
    analyze_texts,
    import_texts,
    personas,
    recorded_run,
)
from biaskit.workflow.probing import ProbeResult, probe, score_continuations
from biaskit.workflow.reporting import Report, report
from biaskit.workflow.stored import analyse, analysis_keys, describe_run, load, merge, result_of

__all__ = [
    "RECORDED",
    "CalibrationResult",
    "ComparisonResult",
    "Examination",
    "PersonasResult",
    "ProbeResult",
    "Report",
    "analyse",
    "analysis_keys",
    "analyze_texts",
    "calibrate",
    "compare",
    "describe_run",
    "doctor",
    "import_texts",
    "load",
    "marked_words",
    "merge",
    "personas",
    "probe",
    "recorded_run",
    "report",
    "result_of",
    "score_continuations",
]
