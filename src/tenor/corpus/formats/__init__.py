"""One file per format of raw reviews, and the registry that lists them."""
