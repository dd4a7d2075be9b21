"""Asynchronous training: one server holds the weights, workers pull them and push gradients."""
