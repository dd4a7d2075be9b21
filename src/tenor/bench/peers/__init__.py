"""What a user would write without tenor, as programs of their own, and the means to run them together."""
