"""`tenor serve`: the HTTP service around a run folder, and its page."""
