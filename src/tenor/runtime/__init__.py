"""A trained model without torch: read a run folder, predict texts and explain the predictions with NumPy and numba."""
