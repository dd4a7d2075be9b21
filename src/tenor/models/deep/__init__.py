"""The deep part of the model: word vectors, a convolution or recurrent cells, pooling over time."""
