"""Work in the background: training runs, other tasks, and many fits on all cores."""
