"""Mergeable scores and exact metrics, each beside the majority baseline."""
