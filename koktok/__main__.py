"""`python -m koktok` is the command `koktok`."""

from koktok.cli import main

main()
