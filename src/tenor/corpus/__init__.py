"""Raw bytes to Arrow record batches of (text, rating, line): one file a format, label rules, the synthetic corpus."""
