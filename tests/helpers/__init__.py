"""What tests lean on: real worker processes, the command line, small corpora, leak checks."""
