"""Where a map-reduce job runs: one small protocol, one file each."""
