"""The factorization machine of any order ([A] Section 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ..errors import WhyNot
from ..settings import setting
from .columnar import LONGER, ColumnModel
from .columns import Anova, ColumnKernel


@dataclass(frozen=True)
class HigherOrder(ColumnModel):
    """f(x) = b + ⟨w, x⟩ + Σ_{m=2}^{M} Σ_s A^m(p^(m)_:,s, x), with separate factors for every order.

    P contains P^(2), …, P^(M) side by side, with `rank` columns each.

    Parameters
    ----------
    order : int, default=3
        M, from 2 to 10.
    """

    order: int = setting(3, low=2, high=10, symbol="M", help="The highest order of an interaction.")

    name = "hofm"
    label = "Factorization machine, higher order"
    formula = (
        r"f(x) = b + \langle w, x\rangle + \sum_{m=2}^{M}\sum_{s} \mathcal{A}^m\big(p^{(m)}_{:,s}, x\big)"
    )
    # Slopes of order m are products of m − 1 entries; a small start would hardly change.
    suited: ClassVar[Mapping[str, Any]] = {"init_scale": 0.1, **LONGER}
    no_threshold: ClassVar[WhyNot | None] = WhyNot(
        "higher_orders",
        "P = 0 is a local minimum at every strength for columns of order m ≥ 3: their gain grows with the "
        "m-th power of P, but λ_p‖P‖² with its square. For pairs, use the λ_max of the machine of order 2.",
    )

    @cached_property
    def kernels(self) -> tuple[ColumnKernel, ...]:
        return tuple(Anova(m) for m in range(2, self.order + 1))
