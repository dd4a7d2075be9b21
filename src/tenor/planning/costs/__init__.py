"""The parts of the cost model: pure functions, one formula each. docs/reference/planning.md explains them."""
