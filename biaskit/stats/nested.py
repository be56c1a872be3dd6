"""Wordings nested in frames, crossed with jobs: how much of the variance is wording.

See docs/methods.md#wording. Values are `[I, J, K]`: I jobs, J frames, K wordings of each frame, all of them
there; or, of one number per template, `[J, K]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from biaskit.stats.arrays import FloatArray
from biaskit.stats.crossed import joined
from biaskit.wording import ROUNDING


@dataclass(frozen=True, slots=True)
class NestedComponents:
    """Variance of jobs, frames, wordings within frames, jobs by frames, and the rest; negative ones as 0."""

    job: float | None
    frame: float | None
    wording: float | None
    job_frame: float | None
    residual: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WordingShare:
    """How much of the variance between templates lies between wordings of one frame."""

    frame: float | None  # variance between frames
    wording: float | None  # variance between wordings of a frame
    share: float | None
    ci95: tuple[float, float] | None = None
    reason: str | None = None


def nested_components(values: FloatArray) -> NestedComponents:
    """Estimate the variance components of cells: job, frame, wording within frame, job by frame, the rest.

    Formula: mean squares A (jobs), B (frames), C (wordings within frames), D (jobs by frames), E (jobs by
        wordings within frames); wording (C − E)/I, job by frame (D − E)/K, frame (B − C − D + E)/(I K),
        job (A − D)/(J K), residual E.
    Arguments: values `[I, J, K]`, finite.
    Returns: five variances; a negative estimate is 0 and the reason names it.
    Missing or empty input: None with fewer than two jobs, frames or wordings, with the reason.
    Reference: docs/methods.md#wording, the method of moments of a balanced design (Searle, Casella and
        McCulloch 1992); checked against plain loops and by simulation.
    """
    n_jobs, n_frames, n_wordings = values.shape
    few = [
        f"{n} {name}{'s' if n != 1 else ''}"
        for n, name in zip(values.shape, ("job", "frame", "wording"), strict=True)
        if n < 2
    ]
    if few:
        return NestedComponents(None, None, None, None, None, f"{' and '.join(few)}: no components")
    grand = values.mean()
    jobs, frames, wordings = values.mean(axis=(1, 2)), values.mean(axis=(0, 2)), values.mean(axis=0)
    pairs = values.mean(axis=2)  # [I, J]
    a = n_frames * n_wordings * ((jobs - grand) ** 2).sum() / (n_jobs - 1)
    b = n_jobs * n_wordings * ((frames - grand) ** 2).sum() / (n_frames - 1)
    c = n_jobs * ((wordings - frames[:, None]) ** 2).sum() / (n_frames * (n_wordings - 1))
    mixed = pairs - jobs[:, None] - frames + grand
    d = n_wordings * (mixed**2).sum() / ((n_jobs - 1) * (n_frames - 1))
    left = values - pairs[:, :, None] - wordings + frames[:, None]
    e = (left**2).sum() / (n_frames * (n_jobs - 1) * (n_wordings - 1))
    found = {
        "job": (a - d) / (n_frames * n_wordings),
        "frame": (b - c - d + e) / (n_jobs * n_wordings),
        "wording": (c - e) / n_jobs,
        "job_frame": (d - e) / n_wordings,
    }
    below = [f"var_{name} was {x:.2g}, shown as 0" for name, x in found.items() if x < 0]
    kept = {name: max(float(x), 0.0) for name, x in found.items()}
    return NestedComponents(**kept, residual=float(e), reason=joined(below))


def wording_share(values: FloatArray, *, level: float = 0.95) -> WordingShare:
    """Estimate the share of the variance between templates that lies between wordings of the same frame.

    Formula: B = K Σ_j (x_j. − x_..)²/(J−1), W = Σ_jk (x_jk − x_j.)²/(J (K−1)); wording W, frame (B − W)/K,
        share = W/(W + frame) = K/(B/W + K − 1), at most 1; its ends the same with (B/W)/F_q in place of
        B/W, F_q the quantiles (1 ± level)/2 of F on J−1 and J(K−1) degrees of freedom.
    Arguments: values `[J, K]`, one number of each template; level of confidence.
    Returns: two variances, their share and its interval, which is exact where both vary normally.
    Missing or empty input: None with fewer than two frames or wordings; no share where nothing varies, and
        no interval where the wordings agree to the last digit; each with the reason.
    Reference: docs/methods.md#wording; 1 − the intraclass correlation of a one-way design (Searle 1971);
        checked against plain loops and by simulated coverage.
    """
    from scipy.special import fdtri

    n_frames, n_wordings = values.shape
    if n_frames < 2 or n_wordings < 2:
        few = "one frame" if n_frames < 2 else "one wording of each frame"
        return WordingShare(None, None, None, reason=f"{few}: no share of the variance")
    means = values.mean(axis=1)
    between = float(n_wordings * ((means - means.mean()) ** 2).sum() / (n_frames - 1))
    within = float(((values - means[:, None]) ** 2).sum() / (n_frames * (n_wordings - 1)))
    frame = (between - within) / n_wordings
    below = f"var_frame was {frame:.2g}, shown as 0" if frame < 0 else None
    frame = max(frame, 0.0)
    if within <= ROUNDING**2:
        frame = frame if frame > ROUNDING**2 else 0.0
        nothing = "nothing varies" if frame == 0.0 else "the wordings of a frame agree: no interval"
        return WordingShare(frame, 0.0, None if frame == 0.0 else 0.0, reason=nothing)
    dof = n_frames - 1, n_frames * (n_wordings - 1)
    quantiles = (float(fdtri(*dof, (1.0 - side * level) / 2.0)) for side in (1, -1))
    low, high = (
        min(n_wordings / (between / within / quantile + n_wordings - 1), 1.0) for quantile in quantiles
    )
    return WordingShare(frame, within, within / (within + frame), (low, high), below)
