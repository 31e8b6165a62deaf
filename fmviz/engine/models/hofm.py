"""The factorization machine of any order ([A] Section 6.1)."""

from __future__ import annotations

from functools import cached_property

from ..kernels import Anova, ColumnKernel
from ..params import ParamSpec
from .columns import ColumnModel


class HigherOrderFM(ColumnModel):
    """f(x) = b + ⟨w, x⟩ + Σ_{m=2}^{M} Σ_s A^m(p^(m)_:,s, x), with factors of their own for every order.

    P holds P^(2), …, P^(M) side by side, `rank` columns each.

    Parameters
    ----------
    order : int
        M ≥ 2.
    """

    name = "hofm"
    label = "Factorization machine, higher order"
    formula = (
        r"f(x) = b + \langle w, x\rangle + \sum_{m=2}^{M}\sum_{s} \mathcal{A}^m\big(p^{(m)}_{:,s}, x\big)"
    )
    params = (ParamSpec("order", "int", 3, 2, 10, symbol="M", help="The highest order of an interaction."),)

    @cached_property
    def _kernels(self) -> tuple[ColumnKernel, ...]:
        return tuple(Anova(m) for m in range(2, self.settings["order"] + 1))

    def kernels(self) -> tuple[ColumnKernel, ...]:
        """See `ColumnModel.kernels`."""
        return self._kernels
