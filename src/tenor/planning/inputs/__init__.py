"""What a plan is made from: measurements of runs, frequencies of data, tables of runs, and prices."""
