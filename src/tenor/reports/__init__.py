"""Reads runs and results, compares them, and draws them as self-contained HTML pages without network requests."""
