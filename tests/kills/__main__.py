"""`python -m tests.kills`: run trials; exit code 1 if any ends unlike the undisturbed run."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from random import Random

# This setting must precede the import of numpy, because threads do not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from tests.kills.disks import FILE_SYSTEMS
from tests.kills.kinds import all_kinds
from tests.kills.trial import DISTURBANCES, Case, Undisturbed
from tests.support.forked import get_ready


def main() -> int:
    kinds = all_kinds()
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--kind", choices=sorted(kinds), action="append", help="default: all kinds")
    parser.add_argument("--count", type=int, default=200, help="trials of all kinds together")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by", choices=DISTURBANCES, default="kill")
    parser.add_argument(
        "--disk", choices=FILE_SYSTEMS, default="tmpfs", help="for full and read-only"
    )
    parser.add_argument(
        "--folder", type=Path, help="keep generated files in this folder and reuse them"
    )
    options = parser.parse_args()
    names = options.kind or list(kinds)
    failed = done = 0
    get_ready()
    with tempfile.TemporaryDirectory(prefix="kills-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        whole: dict[str, Undisturbed] = {}
        for number in range(options.first, options.first + options.count):
            name = names[number % len(names)]
            if name not in whole:
                whole[name] = Undisturbed.of(kinds[name], folder)
            draw = Random(f"{name} {options.seed} {number}")
            outcome = Case(
                whole[name], folder / "case", draw.random(), options.by, options.disk
            ).run()
            done += 1
            failed += bool(outcome.wrong)
            print(f"{number:4} {name:10} {outcome}", flush=True)
    print(f"{done - failed} of {done} as undisturbed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
