"""`python -m tests.fuzz`: run cases, list failure locations; exit code 1 if there are any."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path

# This setting must precede the import of numpy, because threads do not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from tests.fuzz.campaign import run_cases
from tests.fuzz.kinds import all_kinds
from tests.fuzz.outcome import Summary

TURN = 20  # Number of cases of each kind per turn.


def main() -> int:
    # A background process may ignore SIGINT, and the commands to be interrupted would inherit this
    # setting.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kinds = all_kinds()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--kind", choices=sorted(kinds), action="append", help="default: all kinds")
    parser.add_argument("--cases", type=int, default=200, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no further turn then")
    parser.add_argument(
        "--folder", type=Path, help="keep generated files in this folder and reuse them"
    )
    options = parser.parse_args()
    names = options.kind or list(kinds)
    summaries = {name: Summary(name) for name in names}
    end_s = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        for turn in turns(options.first, options.cases):
            if time.monotonic() >= end_s:
                break
            for name in names:
                run_cases(kinds[name], turn, options.seed, folder, summaries[name])
            if turn.stop < options.first + options.cases:
                _tell(summaries.values(), turn.stop - options.first, options.cases)
    for summary in summaries.values():
        print("\n".join(summary.lines()), flush=True)
    return 1 if any(summary.places() for summary in summaries.values()) else 0


def turns(first: int, cases: int) -> Iterator[range]:
    """Yield a few case numbers at a time, so that all kinds advance together if interrupted."""
    for start in range(first, first + cases, TURN):
        yield range(start, min(start + TURN, first + cases))


def _tell(summaries: Iterable[Summary], done: int, cases: int) -> None:
    """Print progress and the failures so far to stderr."""
    failed = [line for summary in summaries for line in [*summary.lines()][1:]]
    print(f"{done} of {cases} of each kind", *failed, sep="\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
