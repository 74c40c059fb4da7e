"""`python -m tests.fuzz`: run cases, and name each place that fails. Exit code 1 if one does."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: threads do not survive a fork

from tests.fuzz.campaign import run_cases
from tests.fuzz.kinds import all_kinds


def main() -> int:
    kinds = all_kinds()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--kind", choices=sorted(kinds), action="append", help="default: all kinds")
    parser.add_argument("--cases", type=int, default=200, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep what is made here, and use it again")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        for name in options.kind or kinds:
            numbers = range(options.first, options.first + options.cases)
            summary = run_cases(kinds[name], numbers, options.seed, folder)
            print("\n".join(summary.lines()), flush=True)
            failed |= bool(summary.places())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
