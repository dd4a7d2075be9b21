"""Shards and manifest on disk, the memory-mapped reader, and the order of batches."""
