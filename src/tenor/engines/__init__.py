"""Where the tasks of a map-reduce job run: one protocol, and one file per engine."""
