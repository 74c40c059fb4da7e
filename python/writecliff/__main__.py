"""`python -m writecliff`."""

from __future__ import annotations

import sys

from writecliff.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
