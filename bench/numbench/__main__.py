"""`python -m numbench`: the command line."""

from numbench.cli import main

if __name__ == "__main__":
    main()
