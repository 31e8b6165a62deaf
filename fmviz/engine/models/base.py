"""What a model declares; the objective, the driver and the solvers ask nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..design import Design
from ..errors import WhyNot
from ..memory import available_bytes, in_words
from ..parameters import Parameters
from ..penalties import Penalty
from ..settings import Bound
from .columns import ColumnViews


@dataclass(frozen=True)
class Notation:
    """How the parts of the objective are written.

    Attributes
    ----------
    matrix, weights : str
        The matrix of parameters, and the matrix of the pairs' weights.
    lambda_p, lambda_sparse, shrinkage, penalty : str
        LaTeX of both strengths and of what they multiply; `shrinkage` is empty where λ_p multiplies nothing.
    shrinkage_term, penalty_term : str
        Both terms in plain characters.
    rank : str
        What k is called.
    """

    matrix: str = "P"
    weights: str = "PPᵀ"
    lambda_p: str = r"\lambda_p"
    lambda_sparse: str = r"\lambda"
    shrinkage: str = r"\|P\|_F^2"
    penalty: str = r"\Omega(P)"
    shrinkage_term: str = "λₚ ‖P‖²"
    penalty_term: str = "λ Ω(P)"
    rank: str = "Rank"

    @property
    def objective(self) -> str:
        """LaTeX of all that is minimised."""
        shrinkage = f"+{self.lambda_p}{self.shrinkage}" if self.shrinkage else ""
        return (
            r"\tfrac1N\sum_n \ell(f(x_n),y_n)+\lambda_w\|w\|^2"
            rf"{shrinkage}+{self.lambda_sparse}\,{self.penalty}"
        )


@dataclass(frozen=True)
class Model(Bound):
    """A function f(x) of some parameters, with its settings.

    Subclasses are frozen dataclasses that declare their settings by `fmviz.engine.settings.setting`.

    Attributes
    ----------
    name, label, formula : str
        Identifier, words, and LaTeX.
    notation : Notation
        How its objective is written.
    multilinear : bool
        Whether f is linear in every single entry of P, as coordinate steps need, and unless it is lifted in
        every row.
    factorised : bool
        Whether the pair weights are products of factors P, rather than parameters W of their own.
    convex : bool
        Whether f is linear in its parameters, so that the objective is convex.
    columnar : bool
        Whether it is a sum of kernels of the columns of P, beyond the second-order machine.
    lifted : bool
        Whether P holds the factors of a tensor side by side, of which f has products.
    fits_coefficients : bool
        Whether the weights of the columns of P are fitted, too.
    overflow_cause : str
        Why f may overflow for reasons of the model's own, as a sentence and a space; else "".
    copies : int
        Matrices of the size of P that a run holds at once.
    part_name : str
        What the blocks of P stand for, in the plural.
    shrinkage_power : int
        To what power the norms of the columns stand in what λ_p multiplies.
    solvers : str
        Where no general solver takes the model: which do, as the end of a sentence.
    certificate : {"stationarity", "gap", "majoriser"}
        What `fmviz.engine.certificates.stationarity.certify` measures for it.
    multi_output : bool
        Whether it has several outputs at once, with a loss of vectors.
    suited : mapping
        Settings of a run that suit it, besides what a data set suggests.
    suited_loss : mapping
        By the task of the data the loss that suits it, where that is not what they suggest.
    """

    noun: ClassVar[str] = "model"
    label: ClassVar[str]
    formula: ClassVar[str]
    factorised: ClassVar[bool] = True
    convex: ClassVar[bool] = False
    solvers: ClassVar[str] = ""
    certificate: ClassVar[str] = "stationarity"
    columnar: ClassVar[bool] = False
    lifted: ClassVar[bool] = False
    overflow_cause: ClassVar[str] = ""
    multi_output: ClassVar[bool] = False
    copies: ClassVar[int] = 6
    part_name: ClassVar[str] = "orders"
    suited: ClassVar[Mapping[str, Any]] = {}
    suited_loss: ClassVar[Mapping[str, str]] = {}

    @property
    def notation(self) -> Notation:
        """How the objective is written."""
        return Notation()

    @property
    def multilinear(self) -> bool:
        """Whether f is linear in every single entry of P."""
        return False

    @property
    def fits_coefficients(self) -> bool:
        """Whether the weights of the columns are fitted."""
        return False

    @property
    def shrinkage_power(self) -> int:
        """To what power ‖p_s‖ stands in what λ_p multiplies."""
        return 2

    @property
    def weighted(self) -> bool:
        """Whether its columns have coefficients λ_s."""
        return "coefficients" in self.shapes(1, 1)

    @property
    def by_order(self) -> bool:
        """Whether interactions of several orders have columns of their own each."""
        return False

    @property
    def plain(self) -> bool:
        """Whether it is a machine of pairs whose factors P are all there is: Σ_{i<j} ⟨p_i, p_j⟩ x_i x_j."""
        return self.factorised and not self.columnar and not self.lifted

    @property
    def order(self) -> int | None:
        """The most features in a product, None where there is no limit."""
        return 2

    @property
    def least_features(self) -> int:
        """The fewest features that it can do with."""
        return 1

    def for_outputs(self, n_outputs: int) -> Model:
        """Return the model of so many outputs; asked of those that are `multi_output`."""
        return self

    def n_outputs_of(self, parameters: Parameters) -> int:
        """Return how many outputs parameters have: machines side by side, or outputs of one."""
        return parameters.n_machines or 1

    def of_output(self, parameters: Parameters, output: int) -> tuple[Model, Parameters]:
        """Return one of the outputs as a machine of its own, with its parameters; of a single one itself."""
        return self, parameters if parameters.n_machines is None else parameters.of_output(output)

    def further_counts(self, parameters: Parameters) -> dict[str, int]:
        """Return what is counted of a fit beside its features and interactions, by the name in its record."""
        return {}

    @property
    def radius(self) -> float:
        """The limit τ of a constraint Ω ≤ τ in place of a price λ; 0 for none."""
        return 0.0

    def why_not(self, penalty: Penalty) -> WhyNot | None:
        """Return None, or the mathematical reason why the penalty does not apply to this model."""
        return None

    def why_no_threshold(self) -> WhyNot | None:
        """Return None, or what there is in place of a strength from which on P = 0 is a minimum.

        See `fmviz.engine.starts.zero_threshold`, which is for machines of second order.
        """
        raise NotImplementedError

    def check_strengths(self, lambda_p: float, lambda_sparse: float) -> None:
        """Raise ValueError where a strength has nothing to hold on to."""

    def bind(self, penalty: Penalty, rank: int) -> Penalty:
        """Return the penalty as it acts on the columns of this model's P."""
        return penalty

    def views(self, rank: int) -> tuple[ColumnViews, ...]:
        """Return how sweeps see the columns of P, from left to right; asked of factorised models."""
        raise NotImplementedError

    def forms(self, penalty: Penalty) -> list[tuple[int | None, Penalty]]:
        """Return the order of each block of columns and the form that the penalty has there."""
        return []

    def penalty_words(self, penalty: Penalty) -> tuple[str, str]:
        """Return the LaTeX of the sparsity penalty on this model's parameters, and what it selects."""
        formula, _, selects = penalty.words()
        return formula, selects

    def cost_note(self, d: int) -> str | None:
        """Return what an iteration over d features costs where that is out of the ordinary; else None."""
        return None

    def check_size(self, d: int, rank: int) -> None:
        """Raise ValueError, naming the size, where the parameters of d features cannot fit into memory."""
        needed, free = 8.0 * self.copies * d * self.shapes(d, rank)["P"][1], available_bytes()
        if needed > free:
            parts = self.shapes(1, rank)["P"][1] // rank
            each = f" for each of {parts} {self.part_name}" if parts > 1 else ""
            smaller = "a smaller rank" + (f" or fewer {self.part_name}" if parts > 1 else "")
            raise ValueError(
                f"rank = {rank:,}{each} and {d:,} features need {in_words(needed)}, and {in_words(free)} are "
                f"free. Choose {smaller}."
            )

    def shapes(self, d: int, rank: int) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array of the parameters, by its name, in their order."""
        raise NotImplementedError

    def start(self, d: int, rank: int, init_scale: float, rng: np.random.Generator) -> Parameters:
        """Return a starting point."""
        raise NotImplementedError

    def predict(self, design: Design, parameters: Parameters) -> np.ndarray:
        """Return f for every row of the design, shape (N,)."""
        raise NotImplementedError

    def forward(self, design: Design, parameters: Parameters) -> tuple[np.ndarray, np.ndarray | None]:
        """Return `predict` and what `gradient` at the same parameters can use of it, or None."""
        return self.predict(design, parameters), None

    def gradient(
        self, design: Design, parameters: Parameters, slope: np.ndarray, sums: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the gradient of Σ_n slope_n f(x_n) in P (or W), in w, shape (d,), and in the bias.

        `sums` is what `forward` returned with the predictions at the same parameters.
        """
        raise NotImplementedError

    def curvature(
        self, design: Design, parameters: Parameters, weight: np.ndarray, sums: np.ndarray | None = None
    ) -> np.ndarray:
        """Return Σ_n weight_n (∂f(x_n)/∂p_js)² for every entry of P; `sums` as for `gradient`."""
        raise NotImplementedError

    def penalised(self, parameters: Parameters) -> np.ndarray:
        """Return the matrix on which Ω acts."""
        raise NotImplementedError

    def gauge(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> float:
        """Return by how much α, shape (N,) or (N, m), must be divided for its gradient to be feasible.

        Asked of models with the certificate "gap" only. That is a t ≥ the least one for which the gradient
        of Σ_n α_n f(x_n) in W, over t, is in the subdifferential at 0 of the penalties on W, whose
        `strengths` are (λ_p, λ). `parameters` may help to find it; without `thorough` it may be larger.
        """
        raise NotImplementedError

    def gauges(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
        thorough: bool,
    ) -> tuple[float, float | None]:
        """Return `gauge`, and a t that it cannot be below: None where it is exact or nothing is known."""
        return self.gauge(design, penalty, parameters, alpha, strengths, thorough), None

    def ball(self, penalty: Penalty, parameters: Parameters) -> float:
        """Return the largest value of the penalty on W that a problem without strengths is about."""
        return self.shrinkage(parameters)

    def dual_quadratic(
        self,
        design: Design,
        penalty: Penalty,
        parameters: Parameters,
        alpha: np.ndarray,
        strengths: tuple[float, float],
    ) -> float:
        """Return what a smooth penalty takes off the dual objective at α; asked where there is one."""
        return 0.0

    def shrinkage_weights(self, parameters: Parameters) -> np.ndarray:
        """Return what the norm of every column of P, to the `shrinkage_power`, is multiplied by."""
        return np.ones(parameters.P.shape[1])

    def column_weights(self, parameters: Parameters) -> np.ndarray:
        """Return half the slope of the shrinkage in p_:,s over p_:,s, for every column of P.

        Where the shrinkage is a sum of squared norms that is what ‖p_:,s‖² is multiplied by.
        """
        return self.shrinkage_weights(parameters)

    def shrinkage(self, parameters: Parameters) -> float:
        """Return what λ_p multiplies: Σ_s ‖p_:,s‖², each with its column's weight."""
        return float(np.square(parameters.P).sum(axis=0) @ self.column_weights(parameters))

    def used_features(self, parameters: Parameters) -> int:
        """Return the number of features that some interaction may use."""
        raise NotImplementedError

    def used_interactions(self, parameters: Parameters) -> int:
        """Return the number of pairs that are used, exactly, without a tolerance."""
        raise NotImplementedError
