"""The processes that train word vectors together: what they share, how they start, and their checkpoints."""
