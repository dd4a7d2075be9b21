"""Generated reviews with a known Bayes accuracy, for tests and benchmarks."""
