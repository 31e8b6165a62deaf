"""Several outputs by models of one output: a machine for each, over a common design."""
