"""The deep part of the model: word vectors, recurrent cells, pooling over time."""
