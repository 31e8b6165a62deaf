"""Recipes: what they keep, and what they mean where they say nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from small_tables import csv_bytes, decided, frame, source_of

from fmviz.tables.encoded import encode
from fmviz.tables.kinds import described
from fmviz.tables.limits import MOST_LEVELS
from fmviz.tables.recipe import Choice, Recipe, columns_of, first_recipe
from fmviz.tables.source import Reading


def test_a_recipe_is_the_same_after_json():
    _, recipe = decided(csv_bytes(frame()), positive="yes", scaling="range", rare=3, numbers="auto")
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    reading = Reading(dates="day", base="0", missing="None,x")
    asked = replace(
        recipe,
        also=("age",),
        order=("no", "yes"),
        logarithm=True,
        reading=reading,
        most_levels=7,
        group="town",
    )
    assert Recipe.from_dict(json.loads(json.dumps(asked.to_dict()))) == asked
    settings, typed = recipe.to_dict(), {"reading": {**recipe.reading.to_dict(), "cells": "typed"}}
    wrong = {**settings, "target": 1, "more": 2}
    for broken in ({}, {"reading": 3, "columns": []}, wrong, {**settings, **typed}):
        with pytest.raises(ValueError, match="not a valid recipe"):
            Recipe.from_dict(broken)


def test_what_a_recipe_leaves_out_is_read_again():
    _, first = decided(csv_bytes(frame()))
    recipe = replace(first, numbers="line", most_levels=MOST_LEVELS)
    settings = recipe.to_dict()
    assert not {"also", "order", "numbers", "most_levels", "group"} & settings.keys()
    assert not {"dates", "base", "missing"} & settings["reading"].keys()
    assert Recipe.from_dict(settings) == recipe


def test_the_first_recipe_is_written_out():
    _, recipe = decided(csv_bytes(frame()))
    assert recipe.columns == tuple(
        Choice(column.name, column.kind, "impute") for column in described(frame())
    )
    assert (recipe.target, recipe.rare) == ("y", 1)
    assert first_recipe(source_of(frame(1_000)), columns_of(source_of(frame(1_000)))).rare == 5


def test_the_group_is_no_feature_unless_chosen():
    source, recipe = decided(csv_bytes(frame()))
    encoded = encode(source, recipe.grouped("town"))
    assert "town" not in encoded.encoder.groups_
    assert encoded.notes[-1] == "Rows with the same town stay on the same side of every split."
    assert (source.table["town"].groupby(encoded.row_groups).nunique() == 1).all()
    chosen = recipe.grouped("town").corrected([Choice("town", "word")])
    assert "town" in encode(source, chosen).encoder.groups_


def test_a_group_that_is_none_is_refused():
    source, recipe = decided(csv_bytes(frame().assign(same="x")))
    for group, sentence in (
        ("z", "'z' is not a column"),
        ("y", "'y' is not a column"),
        ("same", "All rows have the same same"),
    ):
        with pytest.raises(ValueError, match=sentence):
            encode(source, recipe.grouped(group))


def test_a_recipe_without_a_target_or_of_one_that_is_not_there_is_refused():
    source, recipe = decided(csv_bytes(frame()))
    for target, sentence in (("", "no column to predict"), ("z", "'z' is not a column")):
        with pytest.raises(ValueError, match=sentence):
            encode(source, replace(recipe, target=target))
