"""Start the worker processes of a run, show their progress, and name the worker that fails."""
