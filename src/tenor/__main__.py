from tenor.cli import main

main()
