"""Starting points, default strengths, and the λ above which P = 0 is a minimum."""
