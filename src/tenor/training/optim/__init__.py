"""Update rules, the learning-rate schedule and precision."""
