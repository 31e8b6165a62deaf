"""Several outputs from models of one: a machine for each, side by side over one design."""
