"""Plots: pure functions from numbers to a drawing with a description in words and the data behind it."""
