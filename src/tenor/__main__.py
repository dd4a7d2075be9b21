"""`python -m tenor` runs the command line."""

from tenor.cli import main

main()
