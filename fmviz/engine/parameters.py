"""The parameters of a model: named arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

# A name, the slice of its array in a vector, and the shape of the array.
Slice = tuple[str, slice, tuple[int, ...]]


def slices_of(shapes: Mapping[str, tuple[int, ...]]) -> tuple[Slice, ...]:
    """Return the slices of arrays with these shapes in a concatenated vector."""
    slices = []
    begin = 0
    for name, shape in shapes.items():
        end = begin + prod(shape)
        slices.append((name, slice(begin, end), shape))
        begin = end
    return tuple(slices)


class Parameters(Mapping[str, np.ndarray]):
    """Named float64 arrays, in the order of `fmviz.engine.models.Model.shapes`.

    A mapping of names to arrays; the names below are also attributes.

    Parameters
    ----------
    P : (d, columns) array_like, optional
        The factors; in a second-order machine, the weight of the pair (i, j) is ⟨p_i, p_j⟩. Shape (d, 0) if
        the model has W instead.
    w : (d,) array_like, optional
        The linear weights; zeros without a linear term.
    intercept : float, optional
        The bias; 0 without one.
    **arrays : array_like or None
        Others: ``W``, shape (d, d), the symmetric pair weights of a model without factors (quadratic
        regression); ``coefficients``, shape (columns,), the weights of the kernels of the columns of P,
        absent if all are 1. None means absent.
    """

    __slots__ = ("_arrays",)

    def __init__(self, P: Any = None, w: Any = None, intercept: Any = None, **arrays: Any) -> None:
        given = {"P": P, "w": w, "intercept": intercept, **arrays}
        self._arrays = {
            name: np.asarray(array, dtype=np.float64) for name, array in given.items() if array is not None
        }

    @classmethod
    def of_weights(cls, W: np.ndarray, w: np.ndarray | None = None, intercept: Any = 0.0) -> Parameters:
        """Return the parameters of quadratic regressions with symmetric pair weights W, shape (…, d, d)."""
        shape = W.shape[:-1]
        return cls(np.zeros((*shape, 0)), np.zeros(shape) if w is None else w, intercept, W=W)

    @classmethod
    def from_views(cls, vector: np.ndarray, slices: Iterable[Slice], **fixed: Any) -> Parameters:
        """Return parameters whose arrays are views into a float64 vector, plus `fixed` arrays."""
        parameters = cls.__new__(cls)
        parameters._arrays = {name: vector[place].reshape(shape) for name, place, shape in slices}
        parameters._arrays |= {name: np.asarray(array) for name, array in fixed.items() if array is not None}
        return parameters

    def pack(self, names: Iterable[str]) -> np.ndarray:
        """Concatenate the arrays of these names, row by row, into a new vector."""
        return np.concatenate([self._arrays[name].ravel() for name in names])

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {array.shape}" for name, array in self._arrays.items())
        return f"Parameters({shapes})"

    # Comparisons of arrays have no truth value; equality is identity.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def P(self) -> np.ndarray:
        """The factors, shape (d, columns)."""
        return self._arrays["P"]

    @property
    def w(self) -> np.ndarray:
        """The linear weights, shape (d,)."""
        return self._arrays["w"]

    @property
    def intercept(self) -> Any:
        """The bias, a float; for several machines, shape (m,)."""
        bias = self._arrays["intercept"]
        return float(bias) if bias.ndim == 0 else bias

    def shifted(self, by: Any) -> Parameters:
        """Return the parameters with a number added to the bias, or one to that of each output."""
        bias = self._arrays["intercept"]
        return self.replace(intercept=bias + np.reshape(by, bias.shape)) if np.any(by) else self

    @classmethod
    def stacked(cls, each: Sequence[Parameters]) -> Parameters:
        """Stack the parameters of several machines with equal shapes on a new first axis."""
        return cls(**{name: np.stack([parameters[name] for parameters in each]) for name in each[0]})

    @property
    def n_machines(self) -> int | None:
        """The number m of stacked machines, None for a single one."""
        return self.P.shape[0] if self.P.ndim == 3 else None

    def of_output(self, c: int) -> Parameters:
        """Return views of the parameters of one of several machines."""
        return Parameters(**{name: array[c] for name, array in self._arrays.items()})

    @property
    def W(self) -> np.ndarray | None:
        """The pair weights, shape (d, d), or None in a model with factors."""
        return self._arrays.get("W")

    @property
    def coefficients(self) -> np.ndarray | None:
        """The weights of the columns, shape (columns,), or None if all are 1."""
        return self._arrays.get("coefficients")

    @property
    def multipliers(self) -> np.ndarray:
        """The coefficients, ones by default."""
        coefficients = self.coefficients
        return np.ones(self.P.shape[1]) if coefficients is None else coefficients

    @property
    def weights(self) -> np.ndarray:
        """W, for a model with explicit pair weights."""
        if (W := self.W) is None:
            raise ValueError("These are parameters of a factorized model, with P instead of W.")
        return W

    def replace(self, **arrays: Any) -> Parameters:
        """Return the parameters with some arrays replaced; None removes an array."""
        return Parameters(**{**self._arrays, **arrays})

    def padded(self, rank: int) -> Parameters:
        """Return copies padded to `rank` with zero columns and coefficients of 0."""
        missing = rank - self.multipliers.size
        return self.replace(
            P=np.pad(self.P, ((0, 0), (0, missing))),
            w=self.w.copy(),
            coefficients=np.pad(self.multipliers, (0, missing)),
        )

    def copy(self) -> Parameters:
        """Return the parameters with copies of all arrays."""
        return Parameters(**{name: array.copy() for name, array in self._arrays.items()})

    def finite(self) -> bool:
        """Return whether all arrays are finite."""
        return all(bool(np.isfinite(array).all()) for array in self._arrays.values())
