"""`python -m aftereffect`: the command line."""

from aftereffect.cli import main

main()
