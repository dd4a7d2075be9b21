"""Measures any stage with interleaved repeats and reports median and spread; one file per scenario."""
