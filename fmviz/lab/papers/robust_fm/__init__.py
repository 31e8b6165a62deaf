"""Figures about robust_fm, which prints no experiment: ours, declared as such."""

from . import contamination, limits

ARTEFACTS = (contamination.ARTEFACT, limits.ARTEFACT)
