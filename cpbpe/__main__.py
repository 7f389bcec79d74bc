"""``python -m cpbpe`` is the command ``cpbpe``."""

import sys

from cpbpe.cli import main

if __name__ == "__main__":
    sys.exit(main())
