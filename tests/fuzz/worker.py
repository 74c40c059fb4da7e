"""Run a case in a separate process, with limits on time and memory.

A panic, an abort or an endless loop of native code ends only that case.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.outcome import Outcome, Verdict
from tests.support.forked import fork, left_behind, wait_within

SECONDS_MAX = 10.0
BYTES_MAX = 2 << 30
_LEFT_S = 1.0  # Time for the children of a stopped command to stop as well.
_ADDRESSES = 5 << 30  # Number of bytes beyond the mapped memory; reserved memory counts.
# A simulation may take as long as its load requires if it prints its progress as a percentage or by
# steps or rounds.
_SAYS_HOW_FAR = re.compile(
    r"^.*\b\d+ %(  (about|at most) .* left)?$|^(step-|round )\d+  ", re.MULTILINE
)
_STOPS = {"slow": signal.SIGPROF, "hangs": signal.SIGALRM}


def run_case(number: int, folder: Path, words: Callable[[Path], list[str]]) -> Outcome:
    """Run a fuzz case in a child process.

    In the child, `words(folder)` writes the case's files and returns its command line.
    """
    case = folder / "case"
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir()
    child = fork(lambda: _child(case, words))
    if why := wait_within(child, SECONDS_MAX):
        os.kill(child, _STOPS[why])
        if wait_within(child, 2 * SECONDS_MAX):  # The child is still running.
            os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    left_behind(_LEFT_S)
    # A fork starts with the memory that it shares rather than the peak of its parent.
    seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    message = _text(case / "stderr")
    verdict, place = _judge(case, status, message, seconds, peak)
    last = [line for line in message.splitlines() if line and not line.startswith("hint")]
    return Outcome(number, verdict, seconds, peak, place, (last or [""])[-1][:150])


def _judge(case: Path, status: int, message: str, seconds: float, peak: int) -> tuple[Verdict, str]:
    stack = _text(case / "stack")
    answer = json.loads(_text(case / "answer") or "{}")
    if "panic" in answer:
        return "panic", answer["panic"]
    if peak > BYTES_MAX:
        return "large", _place_of(stack)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGPROF:
            return ("simulates" if _SAYS_HOW_FAR.search(message) else "slow"), _place_of(stack)
        if number == signal.SIGALRM:
            return "hangs", _place_of(stack)
        return "killed", signal.Signals(number).name
    if place := answer.get("place"):
        return (
            "large" if answer["error"] == "MemoryError" else "traceback"
        ), f"{place} {answer['error']}"
    if seconds > SECONDS_MAX and not _SAYS_HOW_FAR.search(message):
        return "slow", _place_of(stack)
    if answer.get("code") not in (0, 1, 2, 3):
        return "killed", f"exit code {os.waitstatus_to_exitcode(status)}, {answer}"
    if answer["code"] in (1, 2) and not message.strip():
        return "traceback", "nothing was said"
    return ("refused" if answer["code"] else "done"), ""


def _child(case: Path, words: Callable[[Path], list[str]]) -> int:
    """Run the case in the new process and return its exit code."""
    os.chdir(case)
    resource.setrlimit(resource.RLIMIT_AS, 2 * (_mapped_bytes() + _ADDRESSES,))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    command = words(case)
    Path("words").write_text(json.dumps(command))
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = (
        open(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
        for number in (1, 2)
    )
    stack = open("stack", "w")  # noqa: SIM115 - it has to stay open
    for number in _STOPS.values():
        signal.signal(number, signal.SIG_DFL)
        faulthandler.register(number, file=stack, chain=True)  # Dump the stack, then exit.
    return _main(command)


def _main(command: list[str]) -> int:
    from writecliff._native import recorded_panics
    from writecliff.cli import main as module

    answer: dict[str, object] = {}

    def unexpected(error: BaseException, as_json: bool = False) -> int:
        answer.update(place=_place(error), error=type(error).__name__)
        traceback.print_exception(error, file=sys.stderr)
        return 1

    module._unexpected = unexpected
    try:
        answer["code"] = module.main(command)
    except SystemExit as error:
        answer["code"] = error.code
    except BaseException as error:
        unexpected(error)
        answer["code"] = 1
    if panics := recorded_panics():
        answer["panic"] = panics[0][1]
    Path("answer").write_text(json.dumps(answer))
    return 0


def _place(error: BaseException) -> str:
    """Return the innermost frame of an error within this project, as FILE:LINE."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame
        for frame in frames
        if "/writecliff/" in frame.filename and "site-packages" not in frame.filename
    ]
    if not ours:
        return "outside"
    return f"{ours[-1].filename.partition('/writecliff/')[2]}:{ours[-1].lineno}"


def _place_of(stack: str) -> str:
    """Return the innermost frame of a faulthandler dump within this project, as FILE:LINE."""
    current = (
        stack.partition("(most recent call first)")[2]
        if "Current" not in stack
        else stack.partition("Current")[2]
    )
    frames = re.findall(r'File "[^"]*?python/writecliff/([^"]+)", line (\d+)', current or stack)
    return ":".join(frames[0]) if frames else "before the stack was taken"


def _mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
