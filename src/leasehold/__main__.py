"""`python -m leasehold` is `leasehold`."""

from .cli import main

if __name__ == "__main__":
    main()
