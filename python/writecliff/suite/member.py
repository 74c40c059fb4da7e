"""Program of a child process: `python -m writecliff.suite.member PIPE PARENT`."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from writecliff.startup import lean
from writecliff.suite.children import main_of_member

if __name__ == "__main__":
    lean()
    main_of_member(Connection(int(sys.argv[1])), int(sys.argv[2]))
