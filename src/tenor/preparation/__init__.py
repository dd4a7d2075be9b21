"""Raw rows to token ids: the tokeniser, the vocabulary, and the map-reduce job that prepares data."""
