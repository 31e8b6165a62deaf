"""Background work: training runs, other tasks, and many fits on all cores."""
