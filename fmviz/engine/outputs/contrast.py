"""What speaks for one output against another: the difference of both, as a machine of its own."""

from __future__ import annotations

import numpy as np

from ..models import ConvexFM, Model
from ..parameters import Parameters


def contrast(model: Model, parameters: Parameters, one: int, other: int) -> tuple[Model, Parameters]:
    """Return f_one − f_other as a machine with one output.

    Parameters
    ----------
    model : Model
        Of second order.
    parameters : Parameters
        Of several outputs.
    one, other : int
        Their numbers.

    Raises
    ------
    ValueError
        If the model has products of other orders.
    """
    (first, left), (_, right) = (model.of_output(parameters, c) for c in (one, other))
    linear, bias = left.w - right.w, left.intercept - right.intercept
    if left.W is not None:
        return first, Parameters.of_weights(left.W - right.weights, linear, bias)
    if not (first.plain or isinstance(first, ConvexFM)):
        raise ValueError(
            f"Differences of outputs are read for machines of pairs; this one is a "
            f"{model.label[0].lower()}{model.label[1:]}. Read one output at a time."
        )
    single = first if isinstance(first, ConvexFM) else ConvexFM(diagonal=False)
    if left.P is right.P:
        # One basis: pairs whose weights are alike in both cancel.
        return single, Parameters(left.P, linear, bias, coefficients=left.multipliers - right.multipliers)
    P = np.hstack([left.P, right.P])
    return single, Parameters(
        P, linear, bias, coefficients=np.concatenate([left.multipliers, -right.multipliers])
    )
