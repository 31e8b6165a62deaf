"""The table that the sample of stored files was fitted to."""

import numpy as np
import pandas as pd


def table() -> pd.DataFrame:
    """Return a small table with numbers, words, dates and gaps."""
    rng = np.random.default_rng(0)
    age, town = rng.integers(20, 60, 40).astype(float), rng.choice(["Ulm", "Bonn", "Kiel"], 40)
    y = age / 10 + 3.0 * (town == "Ulm") * (age > 40) + rng.normal(0, 0.1, 40)
    age[3] = np.nan
    since = pd.date_range("2024-01-01", periods=40, freq="9D").strftime("%Y-%m-%d")
    return pd.DataFrame({"age": age, "town": town, "since": since, "y": y.round(3), "smoker": y > 5})
