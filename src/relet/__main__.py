"""`python -m relet` is `relet`."""

from .cli import main

if __name__ == "__main__":
    main()
