"""`python -m cito` is the command `cito`."""

import sys

from cito.cli import main

if __name__ == "__main__":
    sys.exit(main())
