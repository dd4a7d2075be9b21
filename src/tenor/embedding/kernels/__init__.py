"""The compiled loops of `tenor embed`, and the random choices that they make."""
