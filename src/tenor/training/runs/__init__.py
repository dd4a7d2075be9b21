"""The run folder: config, checkpoints, event log and model card, and resuming a run from them."""
