"""Draws runs and benchmarks as self-contained HTML pages with inline plots, without scripts or network requests."""
