"""The wide part of the model: a linear classifier of hashed n-grams."""
