"""The commands that read new reviews with the model of a run."""
