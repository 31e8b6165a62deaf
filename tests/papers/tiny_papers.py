"""Settings under which an artefact of a paper takes no time."""

from __future__ import annotations

TINY = {
    "atarashi2021_fig3": {
        "n_samples": [20], "settings": ["feature selection"], "grid": [1.0], "fm_grid": [1.0],
        "validation": 1, "test": 2, "epochs": 2,
    },
    "atarashi2021_table3": {
        "data": ["drawn ratings"], "drawn": 600, "epochs": 3, "rank": 4, "lambda_w": [0.5e-4],
        "lambda_p": [0.5e-4, 0.5e-3], "grid": [1e-5, 1e-2], "target": 40, "accept": [20, 60],
    },
    "atarashi2021_fig1": {"matrices": 2, "d": 40, "k": 4, "shown": [-1, 1], "tiles": 7},
    "atarashi2021_fig2": {"matrices": 2, "d": 40, "k": 4, "shown": [-1, 1], "tiles": 7},
    "atarashi2021_fig4": {
        "d_true": 6, "d_noise": 4, "N": 20, "k": 2, "log2_lambda": [-1, 0], "epochs": 5, "data_sets": 1,
    },
    "atarashi2021_fig5": {
        "settings": ["feature selection"], "lambda": [1.0], "N": 20, "data_sets": 1, "epochs": 3,
    },
    "atarashi2021_fig6": {"d": [20, 40], "N": 30, "block": 10, "data_sets": 1, "epochs": 2},
    "atarashi2021_fig7": {
        "data": ["drawn ratings"], "drawn": 600, "lambda": [1e-4], "starts": 1, "epochs": 3, "seconds": 0.5,
    },
    "atarashi2021_fig8": {
        "panels": ["a"], "N": [20, 30], "eta0": [1.0, 0.01], "starts": 1, "epochs": 3, "seconds": [0.5, 0.5],
    },
    "atarashi2021_fig9": {
        "data": ["drawn ratings"], "drawn": 600, "regularizers": ["ti"], "eta0": [1.0, 0.01], "starts": 1,
        "epochs": 3, "seconds": 0.5,
    },
    "atarashi2021_fig10": {
        "log2_d": [3, 6], "sigma": [1.0], "lambda": [0.1], "vectors": 3, "entries": 8, "rounds": 1,
    },
    "blondel2016_fig1": {"seeds": 1, "epochs": 5, "features": ["standard"], "targets": ["centred"]},
    "blondel2016_fig2": {"rows": 80, "terms": 150, "words": 20, "epochs": 3, "r": 2, "eta0": [0.1]},
    "blondel2016_fig3": {
        "data": ["drawn ratings"], "drawn": 600, "bases": [2, 4], "epochs": 3, "betas": [2.0],
    },
    "blondel2016_fig4": {
        "data": ["diabetes"], "bases": [3, 6], "seeds": 1, "epochs": 5, "grid": [-1.0, 1.0, 2],
        "folds_used": 1,
    },
    "blondel2017_fig2": {"data": ["wine"], "iterations": 3, "early": 2},
    "blondel2017_fig3": {"data": ["wine"], "splits": 1, "units": 4, "bases": 2, "shares": [0.3]},
    "blondel2017_fig4": {
        "data": [], "splits": 1, "drawn": 600, "units": 4, "bases": 2, "ridges": [1e-3],
        "ridges_of_levels": [1e-4], "shares": [0.5],
    },
    "blondel2017_fig5": {"data": ["wine"], "splits": 1, "steps": 2},
    "blondel2017_table2": {"data": ["wine"], "splits": 1, "units": 2, "bases": 2, "shares": [0.3]},
    "robust_fm_contamination": {
        "data": [], "seeds": 1, "percent": [0, 20], "rows": 80, "features": 4, "strengths": [0.1],
        "epochs": 2, "rounds": 50,
    },
    "blondel2017_table4": {"data": ["wine"], "splits": 1, "units": 2, "bases": 2, "shares": [0.3]},
}  # fmt: skip
