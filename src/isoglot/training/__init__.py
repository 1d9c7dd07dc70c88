"""Training: the step, the loop, the optimiser, checkpoints and the run's log."""
