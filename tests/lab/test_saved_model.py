"""Saved models that are damaged, forged or of something else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fmviz.engine import arrays as engine_arrays
from fmviz.lab.saved_model import SavedModel

MODEL = Path(__file__).parents[1] / "samples" / "model.npz"
MISSING = object()


@pytest.fixture(scope="module")
def sample():
    with np.load(MODEL) as archive:
        return dict(archive)


def forged(path, arrays, about):
    np.savez_compressed(path, **{**arrays, "about": np.array(json.dumps(about))})
    return path


def refused(path, words):
    with pytest.raises(
        ValueError, match=r"t\.npz' is not a model file .* is damaged: .*Give the folder"
    ) as failure:
        SavedModel.load(path)
    assert words in str(failure.value)
    assert "pickle" not in str(failure.value)


ARRAYS = {
    "w too short": ("w", lambda w: w[:-1], "w has shape"),
    "P with one dimension": ("P", lambda P: P[0], "P has shape"),
    "P with a row too many": ("P", lambda P: np.vstack([P, P[:1]]), "P has shape"),
    "P with NaN": ("P", lambda P: P * np.nan, "its parameters are not finite"),
    "P of texts": ("P", lambda P: P.astype(str), "floating-point numbers"),
    "P of objects": ("P", lambda P: P.astype(object), "neither numbers nor text"),
    "P of three outputs": ("P", lambda P: np.stack([P] * 3), "has shape"),
    "a bias of two numbers": ("intercept", lambda b: np.zeros(2), "intercept has shape"),
    "an array of another model": ("W", lambda _: np.ones((2, 2)), "W has shape"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_do_not_fit_are_refused(sample, tmp_path, case):
    name, change, words = ARRAYS[case]
    about = json.loads(str(sample["about"]))
    refused(forged(tmp_path / "t.npz", {**sample, name: change(sample.get(name))}, about), words)


TEXTS = {
    "a scale of 0": (("target", "scale"), 0.0, "scale = 0.0: input should be greater than 0"),
    "a mean that is a word": (("target", "mean"), "x", "mean = 'x'"),
    "no target": (("target",), MISSING, "target"),
    "another task": (("target", "task"), "binary", "target.labels"),
    "an unknown model": (("model",), "x", "'x'"),
    "an unknown loss": (("loss",), "x", "'x'"),
    "a name too few": (("feature_names",), ["a"], "has shape"),
    "columns of other features": (("encoding", "columns"), [], "the features of its columns"),
    "an unknown field": (("surprise",), 1, "surprise"),
    "samples that are missing": (("averaged",), {"binary": False}, "samples_P"),
    "a base that is none": (("base",), "7", "base = '7'"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_descriptions_that_do_not_fit_are_refused(sample, tmp_path, case):
    (*where, last), value, words = TEXTS[case]
    about = json.loads(str(sample["about"]))
    inner = about
    for name in where:
        inner = inner[name]
    if value is MISSING:
        del inner[last]
    else:
        inner[last] = value
    refused(forged(tmp_path / "t.npz", sample, about), words)


def test_what_would_fill_the_memory_is_refused_before_it_is_read(sample, tmp_path, monkeypatch):
    about = json.loads(str(sample["about"]))
    path = forged(tmp_path / "t.npz", {**sample, "P": np.zeros((len(sample["P"]), 400_000))}, about)
    monkeypatch.setattr(engine_arrays, "available_bytes", lambda: 1e6)
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("an array was read"))
    refused(path, "its arrays take")


@pytest.mark.parametrize("seed", range(3))
def test_flipped_bytes_are_noticed(tmp_path, seed):
    data = bytearray(MODEL.read_bytes())
    data[np.random.default_rng(seed).integers(100, len(data) // 2)] ^= 64
    (tmp_path / "t.npz").write_bytes(data)
    refused(tmp_path / "t.npz", "")
