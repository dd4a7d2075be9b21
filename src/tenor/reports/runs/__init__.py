"""Run folders as untrusted input: reading, listing, filtering and comparing them."""
