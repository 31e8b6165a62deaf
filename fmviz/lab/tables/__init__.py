"""Tables as features and a target: read, encoded, fitted, and saved with the model."""
