"""Word vectors: skip-gram and CBOW with negative sampling, trained by several processes over shared memory."""
