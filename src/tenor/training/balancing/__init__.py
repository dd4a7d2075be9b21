"""Divide each batch according to the measured speeds of the workers, and emulate slow workers."""
