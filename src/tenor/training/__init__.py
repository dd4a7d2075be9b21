"""The training loop and everything around it: one folder per concern, and one file per strategy and task."""
