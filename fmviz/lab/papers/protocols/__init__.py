"""How the experiments of the papers are run: protocols that several figures share."""
