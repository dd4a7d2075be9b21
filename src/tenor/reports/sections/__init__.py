"""Sections of a page: one run, several runs side by side, and one result of `bench` or `plan`."""
