"""Texts to word ids: the compiled tokeniser, the word table, stop words and the vocabulary."""
