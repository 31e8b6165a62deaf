"""The data sets, by name. A new one is a module with a `DatasetSpec`, and one line in `DATASETS`."""

from __future__ import annotations

from . import (
    abalone,
    balance,
    clinical,
    flight_delay,
    flights,
    libsvm,
    local_classes,
    monks,
    movielens,
    planted_classes,
    shipped_classes,
    subsets,
    synthetic,
    triples,
)
from .base import Dataset, DatasetSpec

DATASETS: dict[str, DatasetSpec] = {
    "planted_interactions": synthetic.SPECS["planted_interactions"],
    "planted_features": synthetic.SPECS["planted_features"],
    "planted_triples": triples.SPEC,
    "planted_subsets": subsets.SPEC,
    "planted_classes": planted_classes.SPEC,
    "synthetic": synthetic.SPECS["synthetic"],
    "monks1": monks.SPEC,
    "balance_scale": balance.SPEC,
    "flights": flights.SPEC,
    "diabetes": clinical.DIABETES,
    "breast_cancer": clinical.BREAST_CANCER,
    "iris": shipped_classes.IRIS,
    "wine": shipped_classes.WINE,
    "digits": shipped_classes.DIGITS,
    "abalone": abalone.SPEC,
    "movielens_100k": movielens.SPEC,
    "a9a": libsvm.A9A,
    "rcv1": libsvm.RCV1,
    "flight_delay": flight_delay.SPEC,
    "vowel": local_classes.VOWEL,
    "segment": local_classes.SEGMENT,
    "satimage": local_classes.SATIMAGE,
    "letter": local_classes.LETTER,
}


__all__ = ["DATASETS", "Dataset", "DatasetSpec"]
