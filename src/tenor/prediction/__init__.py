"""Load a run folder, predict reviews and evaluate the run."""
