"""Read tables, encode their columns as features and targets."""
