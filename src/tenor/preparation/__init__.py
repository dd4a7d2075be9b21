"""Batches to token ids: the compiled kernel, the mergeable vocabulary, dedupe, the map-reduce job itself."""
