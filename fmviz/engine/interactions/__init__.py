"""The interaction weights of a model, of any order: ranked, sliced and converted, never formed whole."""
