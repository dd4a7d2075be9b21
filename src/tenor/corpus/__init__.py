"""Raw files to Arrow record batches of (text, rating, line): formats, label rules, and the synthetic corpus."""
