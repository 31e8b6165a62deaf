"""Starting points and default strengths, and the λ from which P = 0 is a minimum."""
