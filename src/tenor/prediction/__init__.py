"""Load a run folder and predict."""
