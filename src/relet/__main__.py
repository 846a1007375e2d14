"""`python -m relet` is `relet`."""

from ._cli import main

if __name__ == "__main__":
    main()
