"""What a command and a notebook both do: resolve, ask, analyse, compare, and hand back a result."""

from biaskit.workflow.analyze import analyse, analysis_keys, describe_run, load, merge, result_of
from biaskit.workflow.calibrate import CalibrationResult, calibrate
from biaskit.workflow.cite import cite
from biaskit.workflow.compare import ComparisonResult, compare
from biaskit.workflow.doctor import Examination, doctor
from biaskit.workflow.imported import analyze_texts, import_texts
from biaskit.workflow.marked_words import marked_words
from biaskit.workflow.personas import PersonasResult, personas
from biaskit.workflow.probe import ProbeResult, probe, score_continuations
from biaskit.workflow.recorded import RECORDED, recorded_run
from biaskit.workflow.report import Report, report

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
    "cite",
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
