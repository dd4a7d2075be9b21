"""The phrases that drive a model's decisions, and those that become more frequent."""
