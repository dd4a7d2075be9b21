"""Compiled scanners that find lines, fields and values in blocks of bytes."""
