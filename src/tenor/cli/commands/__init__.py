"""One file per command: it parses its options, calls the library and prints the result."""
