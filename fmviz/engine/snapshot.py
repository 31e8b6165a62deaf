"""Snapshots of a run, and its final status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from html import escape
from typing import Any

from ..typography import typeset
from .parameters import Parameters


def html_table(rows: Mapping[str, str]) -> str:
    """Return (name, text) rows as an escaped HTML table for notebooks, omitting empty rows."""
    cells = (
        f"<tr><th style='text-align: left'>{escape(name)}</th>"
        f"<td style='text-align: left; white-space: pre-line'>{escape(text)}</td></tr>"
        for name, text in rows.items()
        if text
    )
    return f"<table>{''.join(cells)}</table>"


class Reason(StrEnum):
    """Reasons for the end of a run, worst first: with several outputs, the first of their reasons counts.

    A run has stalled if its steps are as small as at convergence but the certificate is far from that of a
    stationary point. It ends because of its rank if only a column beyond the rank could lower the objective.
    """

    DIVERGED = "diverged"
    STALLED = "stalled"
    EPOCHS = "epochs"
    SECONDS = "seconds"
    STOPPED = "stopped"
    RANK = "rank"
    CONVERGED = "converged"


@dataclass(frozen=True)
class Status:
    """The end of a run.

    Attributes
    ----------
    reason : Reason
        The reason, for programs.
    message : str
        A sentence for users.
    """

    reason: Reason
    message: str

    @classmethod
    def of(cls, reason: str, message: str) -> Status | None:
        """Return the status with this reason, or None if it is not a `Reason`."""
        return cls(Reason(reason), message) if reason in set(Reason) else None

    @property
    def converged(self) -> bool:
        """Whether the run met its tolerance."""
        return self.reason is Reason.CONVERGED


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a run after an epoch.

    Attributes
    ----------
    epoch : int
        The number of completed epochs; 0 is the start.
    seconds : float
        CPU time of the solver's thread, without evaluation.
    objective : float
        The objective of `fmviz.engine.problem.Problem`, the sum of the four parts below.
    loss, penalty_w, penalty_p, penalty_sparse : float
        (1/N) Σ ℓ, λ_w‖w‖², λ_p‖P‖²_F and λ Ω(P); for a quadratic regression the last two are λ_p‖W‖_tr
        and λ‖W‖₁, for a convex factorization machine λ_p‖W‖_tr and 0.
    used_features : int
        The number of non-zero rows of P, or of features with a non-zero pair weight in W.
    used_interactions : int
        The number of pairs i < j whose rows of P share a column in which both are non-zero, or whose weight
        in W is not 0.
    certificate : float
        See `fmviz.engine.certificates.stationarity.certify`: the stationarity residual, 0 at a stationary
        point, or for a convex model the relative duality gap, 0 at the optimum.
    change : float
        The largest change of a parameter during the epoch, relative to the largest parameter.
    parameters : Parameters
        Copies of the parameters; release them after use.
    metrics : mapping of str to float
        Values added by callers: validation loss, support F1, …
    status : Status or None
        Set in the last snapshot of a run, otherwise None.
    """

    epoch: int
    seconds: float
    objective: float
    loss: float
    penalty_w: float
    penalty_p: float
    penalty_sparse: float
    used_features: int
    used_interactions: int
    certificate: float
    change: float
    parameters: Parameters
    metrics: Mapping[str, float] = field(default_factory=dict)
    status: Status | None = None

    @classmethod
    def of_record(
        cls, record: Mapping[str, float], parameters: Parameters, status: Status | None = None
    ) -> Snapshot:
        """Build a snapshot from its `record`."""
        own = {field.name for field in fields(cls)} - {"parameters", "metrics", "status"}
        scalars: dict[str, Any] = {name: record[name] for name in own}
        metrics = {name: value for name, value in record.items() if name not in own}
        return cls(**scalars, parameters=parameters, metrics=metrics, status=status)

    def described(self) -> dict[str, str]:
        """Return the values by display name, and the reason why the run ended."""
        return {
            "Epochs": f"{self.epoch:,}",
            "Objective": f"{self.objective:.6g}",
            "Used": f"{self.used_interactions:,} interactions of {self.used_features:,} features",
            **{name.replace("_", " ").capitalize(): f"{value:.4g}" for name, value in self.metrics.items()},
            "Certificate": typeset(self.certificate, ".2g"),
            "Status": "" if self.status is None else self.status.message,
        }

    def _repr_html_(self) -> str:
        return html_table(self.described())

    def record(self) -> dict[str, float | int]:
        """Return the scalars as a flat record: a row of a history."""
        return {
            "epoch": self.epoch,
            "seconds": self.seconds,
            "objective": self.objective,
            "loss": self.loss,
            "penalty_w": self.penalty_w,
            "penalty_p": self.penalty_p,
            "penalty_sparse": self.penalty_sparse,
            "used_features": self.used_features,
            "used_interactions": self.used_interactions,
            "certificate": self.certificate,
            "change": self.change,
            **self.metrics,
        }
