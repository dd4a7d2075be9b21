"""The recurrent classifier, its parts, and the small dense network. Nothing here knows of workers."""
