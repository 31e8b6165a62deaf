"""Randomly corrupted files are read, or refused with a message."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.sparse as sp
from fuzzing import mutated
from lab.hostile_files import FILES

from fmviz.lab.datasets import Dataset
from fmviz.tables.encoded import encode
from fmviz.tables.files import read
from fmviz.tables.recipe import columns_of, first_recipe


@pytest.fixture(scope="module")
def small():
    """Files of at most 100 kB, by name."""
    files = ((file.name, file.make()) for file in FILES if "bomb" not in file.name)
    return [(name, data) for name, data in files if 50 < len(data) < 100_000]


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(200))
def test_broken_files_are_read_or_refused_in_a_sentence(small, seed):
    dice = random.Random(seed)
    name, data = dice.choice(small)
    try:
        source = read(mutated(data, dice), name=name)
        dataset = Dataset.of_table(encode(source, first_recipe(source, columns_of(source))), "x", "X")
    except ValueError as error:
        said = str(error)
        assert said.endswith("."), said
        assert "\n" not in said
        assert len(said) < 1_000
    else:
        assert np.isfinite(dataset.y).all()
        assert np.isfinite(dataset.X.data if sp.issparse(dataset.X) else dataset.X).all()
