from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fmviz
from fmviz.engine.design import Design
from fmviz.engine.memory import CACHE_LINE, aligned_copy

X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [3.0, -1.0, 0.0]])
FORMS = {
    "lists": X.tolist(),
    "fortran": np.asfortranarray(X),
    "float32": X.astype(np.float32),
    "int": X.astype(int),
    "frame": pd.DataFrame(X),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sp.csr_array(X),
    "csc": sp.csc_matrix(X),
    "coo": sp.coo_array(X),
    "lil": sp.lil_array(X),
    "dok": sp.dok_array(X),
    "csr32": sp.csr_array(X.astype(np.float32)),
}


def read(design: Design, rows: bool = False) -> np.ndarray:
    """Rebuild X through the accessors of columns that kernels use, or those of rows of stochastic kernels."""
    out = np.zeros(design.shape[:: 1 if rows else -1])
    data, indices, indptr = design.rows if rows else design.columns
    for j, (begin, end) in enumerate(itertools.pairwise(indptr)):
        values, places = data[begin:end], indices[begin:end]
        for i in range(end - begin):
            out[j, design.storage.row(places, i)] = design.storage.value(values, i)
    return out if rows else out.T


@pytest.mark.parametrize("form", FORMS)
def test_every_form_becomes_the_same_matrix(form):
    design = Design(FORMS[form])
    assert design.shape == (3, 3)
    assert np.array_equal(read(design), X)
    assert np.array_equal(read(design, rows=True), X)
    assert design.rows is design.rows
    assert design.longest_row == (2 if design.storage.name == "sparse" else 3)
    assert np.array_equal(design.dot(np.eye(3)), X)
    assert np.array_equal(design.transpose_dot(np.eye(3)), X.T)
    dense = design.power(3)
    assert np.array_equal(dense.toarray() if sp.issparse(dense) else dense, X**3)
    assert design.storage.name == ("sparse" if sp.issparse(FORMS[form]) else "dense")


def test_ones_need_no_values():
    ones = sp.csr_array((X != 0).astype(float))
    design = Design(ones)
    assert design.storage.name == "binary"
    assert design.columns.data.size == 0
    for rows in (False, True):
        assert np.array_equal(read(design, rows), ones.toarray())
    assert np.array_equal(np.asarray(design.power(4).todense()), ones.toarray())


def test_duplicates_are_summed_and_stored_zeros_dropped_without_touching_the_input():
    messy = sp.coo_array(([1.0, 2.0, 0.0], ([0, 0, 2], [1, 1, 0])), shape=(3, 2))
    csr = messy.tocsr()
    stored = csr.data.copy()
    design = Design(messy)
    assert design.nnz == 1
    assert design.dot(np.eye(2))[0, 1] == 3.0
    Design(csr)
    assert np.array_equal(csr.data, stored)


def test_of_nothing_there_is_nothing():
    empty = Design(sp.csr_array((2, 3)))
    assert np.array_equal(read(empty, rows=True), np.zeros((2, 3)))
    assert empty.longest_row == 0


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([[1.0, np.nan]], "NaN"),
        ([[1.0, np.inf]], "infinity"),
        (sp.csr_array([[1.0, np.nan]]), "NaN"),
        ([["a", "b"]], "not a number"),
        ([1.0, 2.0], "2D table"),
        (np.zeros((2, 2, 2)), "dimension"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.ones((2, 2)) * 1j, "complex"),
    ],
)
def test_bad_tables_get_a_sentence(bad, words):
    with pytest.raises(ValueError, match=words):
        Design(bad)


def test_aligned_copies_begin_with_a_cache_line():
    for shape in ((0,), (1,), (7, 3), (0, 4)):
        for source in (np.ones(shape), np.ones(shape, dtype=np.float32).T, np.ones(shape, dtype=int)):
            copy = aligned_copy(source)
            assert copy.ctypes.data % CACHE_LINE == 0 or not copy.size
            assert copy.dtype == np.float64
            assert copy.flags.c_contiguous
            assert copy.flags.writeable
            assert np.array_equal(copy, source)
            assert not np.shares_memory(copy, source)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("index", [-1, 99])
def test_sparse_matrices_that_point_outside_themselves_are_refused(form, index):
    matrix = sp.random_array((9, 6), density=0.5, rng=np.random.default_rng(0), format=form)
    (matrix.coords[1] if form == "coo" else matrix.indices)[3] = index
    with pytest.raises(ValueError, match="broken sparse matrix"):
        Design(matrix)
    with pytest.raises(ValueError, match="broken sparse matrix"):
        fmviz.FactorizationMachineRegressor().fit(matrix, np.zeros(9))


@pytest.mark.parametrize("broken", ["index", "length"])
def test_broken_lists_of_rows_are_refused_before_scipy_reads_them(broken):
    matrix = sp.random_array((9, 6), density=0.5, rng=np.random.default_rng(0), format="lil")
    matrix.rows[2] = [0, 99] if broken == "index" else [0]
    matrix.data[2] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"broken sparse matrix \(.*row 2"):
        Design(matrix)
    with pytest.raises(ValueError, match="broken sparse matrix"):
        fmviz.BayesianFMRegressor().fit(matrix, np.zeros(9))
