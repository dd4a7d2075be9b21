"""The classifier of reviews with its wide and deep parts, and small networks. This folder knows nothing of workers."""
