"""The recurrent classifier, its parts, and the small dense network. This folder knows nothing about workers."""
