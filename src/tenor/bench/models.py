"""The model of the scenarios that compare ways of training: an LSTM alone, which is the same whatever the data."""

from __future__ import annotations

from tenor.training.settings import TrainSettings

LSTM = TrainSettings(
    model="deep",
    cell="lstm",
    embeddings="none",
    embedding_dim=100,
    hidden=128,
    layers=1,
    bidirectional=False,
    pooling="max-mean",
    dropout=0.3,
    input_dropout=0.3,
    word_dropout=0.0,
    ngrams=3,
    characters=0,
    wide_lr=1.0,
    epochs=3,
    batch_size=64,
    lr=2e-3,
)
