"""Behaviour tests: written cases by kind, such as negation or contrast, and how a model does on them."""
