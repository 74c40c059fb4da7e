"""`python -m tests.guest`: run the drive tests, a command or a shell in the guest, or fetch it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from tests.guest.fetch import KERNEL_SUITES, cache, default_kernel, fetch
from tests.guest.job import Job, is_terminal, run_folder
from tests.guest.reasons import CannotRun, GuestFailed
from tests.guest.testing import (
    IN_GUEST,
    QUIET,
    ROOT,
    failed_in,
    print_table,
    pytest_words,
    run_all,
)

NOT_RUN = 3


def main() -> int:
    """Return the exit code of the command in the guest, or 3 if no guest could run."""
    parser, options = _parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if os.environ.get("WRITECLIFF_NO_GUEST"):
            raise CannotRun("WRITECLIFF_NO_GUEST is set")
        if options.do == "fetch":
            fetch(options.kernel)
            print(cache())
            return 0
        return _run(parser, options)
    except CannotRun as reason:
        what = "drive tests" if options.do == "test" else "guest"
        print(f"{what} SKIPPED: {reason}", file=sys.stderr)
        return _code_of_skip(options)
    except GuestFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _code_of_skip(options: argparse.Namespace) -> int:
    """Return 0 if the skip was requested or --or-skip allows it, otherwise NOT_RUN."""
    asked = bool(os.environ.get("WRITECLIFF_NO_GUEST"))
    return 0 if asked or options.or_skip else NOT_RUN


def _parse() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="python -m tests.guest", description=__doc__)
    parser.add_argument("do", choices=("test", "run", "shell", "fetch"))
    parser.add_argument("--kernel", choices=list(KERNEL_SUITES), default=default_kernel())
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run only the tests in the guest that are not marked long",
    )
    parser.add_argument(
        "--twice", action="store_true", help="run failed tests a second time, in a new guest"
    )
    parser.add_argument("--seconds", type=float, help="end the guest after this time")
    parser.add_argument("--results", type=Path, help="keep what the guest writes to /run/out here")
    parser.add_argument(
        "--or-skip", action="store_true", help="exit with 0 if no guest can run here"
    )
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, help="the command to run, or after -- pytest's arguments"
    )
    options = parser.parse_args()
    options.words = options.words[options.words[:1] == ["--"] :]
    return parser, options


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    words = options.words
    in_guest = ["--basetemp=/run/tests", "--junitxml=/run/out/junit.xml"]
    if options.do == "shell":
        if not is_terminal():
            parser.error("a shell needs a terminal")
        words = ["/bin/bash", "-i"]
    elif options.do == "test":
        chosen = [QUIET, *(["-m", "not long"] if options.quick else []), *IN_GUEST]
        words = pytest_words("/run/out/figures.json", *in_guest, *(words or chosen))
    elif not words:
        parser.error("which command?")
    paths = [str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    where = {"PYTHONPATH": ":".join(paths), "PYTHONUNBUFFERED": "1"}
    where["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = (
        "1"  # The tests need no plugins, and some plugins take seconds to import.
    )
    parts = fetch(options.kernel)
    with run_folder() as run:
        out = options.results.resolve() if options.results else None
        job = Job(parts, words, run=run, out=out, more=where, terminal=options.do == "shell")
        if options.do == "test" and not (options.words or options.quick):
            return run_all(job, seconds=options.seconds, where=where)
        again: list[str] = []
        try:
            with job:
                status = job.follow(options.seconds)
        except GuestFailed:
            if not options.twice:
                raise
            again = words
        print_table(job.out / "figures.json")
        if not again and status and options.twice:
            failed = failed_in(job.out / "junit.xml")
            again = (
                pytest_words("/run/out/figures.json", QUIET, *in_guest, *failed) if failed else []
            )
        if again:
            print("running the failed tests again, in a new guest", flush=True)
            with Job(parts, again, run=run, out=out, images=run / "again", more=where) as job:
                status = job.follow(options.seconds)
            print_table(job.out / "figures.json")
        return status


if __name__ == "__main__":
    sys.exit(main())
