"""Measure any stage: interleaved repeats, warm-up apart, median and spread; one file a scenario."""
