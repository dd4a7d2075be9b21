"""Upper bounds on the size of a model, checked before memory is allocated for what a run folder asks for."""

from __future__ import annotations

MAX_LAYERS = 256
MAX_WIDTH = 1 << 16  # of the hidden state and of the word vectors
MAX_WORDS = 1 << 28  # rows of the embedding
MAX_CLASSES = 256  # labels are bytes
MIN_BITS, MAX_BITS = 8, 26  # a table of n-grams has 2^bits rows
MAX_NGRAM = 8  # tokens of the longest n-gram
MAX_CHARACTERS = 8  # of the longest n-gram within a word
MAX_WINDOW = 64  # inputs that an output of a convolution reads
