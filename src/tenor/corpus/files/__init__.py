"""Find and open input files: folders, globs, URLs, compressed files, archives, encodings."""
