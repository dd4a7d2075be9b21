"""The loop, schedule, checkpoints and launching; how workers agree lies in strategies/."""
