"""Shards and manifest on disk, the memory-mapped reader, the order of batches, local staging copies."""
