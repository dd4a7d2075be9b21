"""Prepared data on disk: shards and manifest, the memory-mapped reader, and the order of batches."""
