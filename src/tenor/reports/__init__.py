"""Draw what was measured: self-contained HTML with inline plots, no script and no request to anywhere."""
