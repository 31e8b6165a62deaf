"""Records of a run: changes of its settings, estimated caps, provenance, and a program that repeats it."""
