"""Shards and manifest on disk, the memory-mapped reader, local staging copies."""
