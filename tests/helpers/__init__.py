"""Shared test tools: real worker processes, the command line, small corpora, leak checks."""
