"""a9a and RCV1, the two data sets of atarashi2021 that LIBSVM offers, read from folders of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._libsvm import PART, in_parts
from .base import Dataset, DatasetSpec

_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"


def _spec(
    name: str,
    title: str,
    description: str,
    *,
    folder: str,
    files: Sequence[str],
    n_features: int,
    labels: tuple[str, str],
    target_name: str,
    source: str,
    licence: str,
    suggested: Mapping[str, Any],
) -> DatasetSpec:
    remedy = (
        f"Download {' and '.join(files)} from the LIBSVM data page, {_PAGE}, put them (as they are, or "
        f"compressed as bz2 or xz) into a folder named {folder}, and set the environment variable FMVIZ_DATA "
        f"to the folder that holds {folder}."
    )
    unavailable, read = in_parts(folder, files, n_features, remedy)
    names = tuple(f"feature {j}" for j in range(1, n_features + 1))

    def load(part: str) -> Dataset:
        X, y = read(part)
        return spec.dataset(
            X=X,
            y=y,
            feature_names=names,
            groups=names,
            target_name=target_name,
            class_labels=labels,
        )

    spec = DatasetSpec(
        name=name,
        title=title,
        description=description,
        task="binary",
        load=load,
        own_params=(PART,),
        source=source,
        licence=licence,
        unavailable=unavailable,
        suggested={
            "rank": 10,
            "regularizer": "ti",
            "lambda_w": 1e-4,
            "lambda_p": 1e-4,
            "solver": "auto",
            "loss": "logistic",
            "fit_linear": True,
            "fit_intercept": True,
            "init_scale": 0.05,
            "validation": 0.2,
            "tol": 1e-3,
            **suggested,
        },
    )
    return spec


A9A = _spec(
    "a9a",
    "a9a",
    "32,561 people of a census, 16,281 more for testing; does one earn more than 50,000 dollars? The 123 "
    "indicators stand for 14 attributes, of which the continuous ones are cut into five.",
    folder="a9a",
    files=("a9a", "a9a.t"),
    n_features=123,
    labels=("up to 50,000", "more than 50,000"),
    target_name="income",
    source="LIBSVM; from Adult (B. Becker & R. Kohavi, 1996), UCI Machine Learning Repository",
    licence="CC BY 4.0 (UCI)",
    suggested={"lambda_sparse": 1e-4, "max_epochs": 100},
)
RCV1 = _spec(
    "rcv1",
    "RCV1",
    "Is a news story about companies or the economy (CCAT, ECAT), or about politics or the markets (GCAT, "
    "MCAT)? 20,242 stories, 677,399 more for testing, each as 47,236 tf-idf weights of unit length.",
    folder="rcv1",
    files=("rcv1_train.binary", "rcv1_test.binary"),
    n_features=47_236,
    labels=("GCAT, MCAT", "CCAT, ECAT"),
    target_name="topic",
    source="LIBSVM; D. D. Lewis et al. (2004), RCV1: a new benchmark collection, JMLR 5",
    licence="Reuters: research use only, no redistribution",
    suggested={"lambda_sparse": 1e-7, "max_epochs": 50},
)
