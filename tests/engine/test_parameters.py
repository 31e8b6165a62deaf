"""Parameters are named arrays; packing, copies and checkpoints are loops over them."""

from __future__ import annotations

import numpy as np
import pytest

from fmviz.engine.checkpoint import Checkpoint, recall, remember
from fmviz.engine.models import MODELS, Model, get_model
from fmviz.engine.parameters import Parameters, slices_of

ALL = [*MODELS.values(), get_model("hofm", {"order": 4}), get_model("lifted", {"degree": 3})]
D, RANK = 5, 3


def filled(model: Model) -> Parameters:
    """Return parameters of the model's shapes in which every number is another one."""
    shapes = model.shapes(D, RANK)
    numbers = np.arange(1.0, 1.0 + sum(int(np.prod(shape)) for shape in shapes.values()))
    return Parameters.from_views(numbers, slices_of(shapes))


def same(item: Parameters, other: Parameters) -> bool:
    return list(item) == list(other) and all(
        item[name].shape == other[name].shape and np.array_equal(item[name], other[name]) for name in item
    )


class Owner:
    """What remembers parameters, as solvers do."""

    memory = ("_now",)

    def __init__(self, now: Parameters) -> None:
        self._now = now


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_a_start_has_the_arrays_that_the_model_names(model):
    start = model.start(D, RANK, 0.1, np.random.default_rng(0))
    assert {name: array.shape for name, array in start.items()} == model.shapes(D, RANK)
    assert all(array.dtype == np.float64 for array in start.values())


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_packing_and_unpacking_are_inverse(model):
    shapes = model.shapes(D, RANK)
    here = filled(model)
    vector = here.pack(shapes)
    assert vector.tolist() == list(range(1, vector.size + 1))
    # Views into the vector, in the order of the shapes; the packed vector is new.
    there = Parameters.from_views(vector, slices_of(shapes))
    assert same(here, there)
    assert all(np.shares_memory(array, vector) for array in there.values() if array.size)
    assert not any(np.shares_memory(array, vector) for array in here.values())


def test_names_are_those_of_a_mapping_and_attributes():
    here = Parameters([[1, 2], [3, 4]], [5, 6], 7)
    assert list(here) == ["P", "w", "intercept"]
    assert (here.W, here.coefficients, here.intercept) == (None, None, 7.0)
    assert here.P is here["P"]
    assert here.multipliers.tolist() == [1.0, 1.0]
    assert repr(here) == "Parameters(P: (2, 2), w: (2,), intercept: ())"
    with pytest.raises(ValueError, match="with P instead of W"):
        _ = here.weights
    quadratic = Parameters.of_weights(np.eye(3))
    assert quadratic.weights is quadratic["W"]
    assert Parameters(here.P, here.w, 0.0, coefficients=[2, 0]).multipliers.tolist() == [2.0, 0.0]


def test_replacing_leaves_the_original_as_it_is():
    here = Parameters(np.ones((2, 1)), np.zeros(2), 0.5, coefficients=[3.0])
    there = here.replace(w=[1.0, 2.0], coefficients=None, W=np.eye(2))
    assert list(there) == ["P", "w", "intercept", "W"]
    assert there.P is here.P
    assert there.w.tolist() == [1.0, 2.0]
    assert here.w.tolist() == [0.0, 0.0]
    assert here.coefficients.tolist() == [3.0]


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_one_bad_number_anywhere_is_not_finite(model):
    here = filled(model)
    assert here.finite()
    for name, array in here.items():
        for bad in (np.nan, np.inf) if array.size else ():
            broken = array.copy()
            broken.flat[-1] = bad
            assert not here.replace(**{name: broken}).finite()


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_checkpoints_bring_parameters_back(model):
    here = filled(model)
    packed = Checkpoint(3, 0.5, 0.1, remember(Owner(here))).to_bytes()
    other = Owner(model.start(D, RANK, 0.1, np.random.default_rng(0)))
    recall(other, Checkpoint.from_bytes(packed).memory)
    assert same(here, other._now)
    assert not any(np.shares_memory(here[name], other._now[name]) for name in here)
