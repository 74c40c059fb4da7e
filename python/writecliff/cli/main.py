"""Entry point of the command line, with dispatch, exit codes and error output.

Exit codes: 0 done, 1 failed, 2 usage, configuration or target, 3 a limit was missed (see
limits.py), 130 interrupted. stdout contains only data, and diagnostics go to stderr. With `--json`,
an error is a single JSON object on stderr:

    {"error": {"message": "...", "hint": "..." or null, "exit_code": 2}}
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Sequence
from itertools import takewhile

from writecliff import version
from writecliff.cli.commands import DRIVE_COMMANDS, MOVED, PROGRAM, root_screen
from writecliff.cli.streams import safe_streams
from writecliff.errors import NO_SPACE_HINT, InternalError, WritecliffError
from writecliff.startup import lean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
_END_OF_LINE = re.compile(r"\n(?!  )")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's), and return the exit code."""
    if argv is None:  # Only the program itself does this, not a call from another process.
        lean()
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Position where the program's own options end.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ours, others = arguments[:end], arguments[end:]
    debug = "--debug" in ours
    arguments = [argument for argument in ours if argument != "--debug"] + others
    as_json = "--json" in ours
    _open_closed_streams()
    with safe_streams():
        try:
            return _run(arguments, debug=debug, as_json=as_json)
        finally:
            # If the module is not imported, no run has been reserved.
            if runs := sys.modules.get("writecliff.api.runs"):
                runs.remove_unused()


def _run(arguments: list[str], *, debug: bool, as_json: bool) -> int:
    try:
        if not arguments or arguments[0] in ("--help", "-h"):
            print(root_screen())
            code = EXIT_OK
        elif arguments == ["--version"]:
            print(version())
            code = EXIT_OK
        elif arguments[:2] == ["completion", "words"]:
            code = _complete(arguments[2:])
        else:
            if not debug:
                _silence_libraries()
            code = _dispatch(_drives_as_options(_present_names(arguments, quiet=as_json)))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return complain("interrupted", None, EXIT_INTERRUPTED, as_json)
    except BrokenPipeError:
        _silence_stdout()
        return EXIT_OK
    except WritecliffError as error:
        if debug:
            _print_traceback()
        if isinstance(error.__cause__, KeyboardInterrupt):
            return complain("interrupted", None, EXIT_INTERRUPTED, as_json)
        return complain(str(error), error.hint, error.exit_code, as_json)
    except OSError as error:
        if debug:
            _print_traceback()
        return _os_error(error, as_json)
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # A panic in the native module.
            from writecliff.native_errors import internal_error

            error = internal_error(error).with_traceback(error.__traceback__)
        elif not isinstance(error, Exception):
            raise
        if debug:
            _report(error, sys.stderr)
            return EXIT_FAILED
        return _unexpected(error, as_json)


def _complete(arguments: list[str]) -> int:
    """Print completions for a shell without loading cyclopts, because completion must be fast."""
    from writecliff.cli.complete import answer

    print(answer(arguments[1:]).text())
    return EXIT_OK


def _present_names(arguments: list[str], *, quiet: bool) -> list[str]:
    """Replace a version 0.1 command name with the current name, and print a hint unless `quiet`."""
    name, *rest = arguments
    if name not in MOVED:
        return arguments
    present = MOVED[name]
    if not quiet:
        command = " ".join((PROGRAM, *present))
        print(f"hint: `{PROGRAM} {name}` is now `{command}`", file=sys.stderr)
    return [*present, *rest]


def _drives_as_options(arguments: list[str]) -> list[str]:
    """Return the arguments with drives that follow the command name given by `--on` instead.

    `writecliff test sim:NAME iops` and `writecliff test iops sim:NAME` are accepted as
    `writecliff test iops --on sim:NAME`.
    """
    if not arguments or arguments[0] not in DRIVE_COMMANDS:
        return arguments
    # A test's name may precede the drive.
    first = 2 if arguments[0] == "test" and not any(map(_is_drive, arguments[1:2])) else 1
    drives = [*takewhile(_is_drive, arguments[first:])]
    others = arguments[first + len(drives) :]
    end = others.index("--") if "--" in others else len(others)
    options = (word for drive in drives for word in ("--on", drive))
    return [*arguments[:first], *others[:end], *options, *others[end:]]


def _is_drive(word: str) -> bool:
    """Return `True` for a target, such as `sim:NAME` or `/dev/NAME`, but not for files in /dev."""
    is_file = word.startswith(("/dev/stdin", "/dev/fd/", "/dev/shm/"))
    return word.startswith(("sim:", "file:", "/dev/")) and not is_file


def _silence_libraries() -> None:
    from writecliff.quiet import silence_libraries  # Help and completion do not need this import.

    silence_libraries()


def _dispatch(arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    from writecliff.cli.commands import build_app
    from writecliff.cli.usage import usage_error

    try:
        result = build_app()(arguments)
    except CycloptsError as error:
        raise usage_error(error, arguments) from None
    return result if isinstance(result, int) else EXIT_OK


def complain(message: str, hint: str | None, code: int, as_json: bool) -> int:
    """Print an error on stderr as text or JSON, and return `code`."""
    try:
        if as_json:
            import json

            body = {"error": {"message": message, "hint": hint, "exit_code": code}}
            print(json.dumps(body), file=sys.stderr)
        else:
            # Indent the continuation lines of a message. Other line breaks are parts of names.
            print("error: " + _END_OF_LINE.sub(r"\\n", message), file=sys.stderr)
            if hint:
                print(f"hint: {hint}", file=sys.stderr)
    except BrokenPipeError:
        pass
    return code


def _os_error(error: OSError, as_json: bool) -> int:
    where = f": {error.filename}" if error.filename else ""
    hint = None
    if error.errno == errno.ENOSPC:
        hint = NO_SPACE_HINT
    text = (error.strerror or str(error)).lower()
    return complain(f"{text}{where}", hint, EXIT_FAILED, as_json)


def _unexpected(error: Exception, as_json: bool) -> int:
    """Report a bug in one line, and store the traceback in a file for a bug report."""
    import tempfile

    name = "" if isinstance(error, InternalError) else f"{type(error).__name__}: "
    message = f"internal error: {name}{' '.join(str(error).split())}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="writecliff-", suffix=".traceback", delete=False
        ) as file:
            print(f"writecliff {version()}\n", file=file)
            _report(error, file)
        hint = f"this is a bug in writecliff; please report it with {file.name}"
    except OSError:
        hint = "this is a bug in writecliff; please report it with the output of --debug"
    return complain(message, hint, EXIT_FAILED, as_json)


def _report(error: Exception, file: SupportsWrite[str]) -> None:
    """Print the traceback of a bug, or the native stack of a panic."""
    import traceback

    traceback.print_exception(error, file=file)
    if isinstance(error, InternalError):
        print(f"\n{error.details}", file=file)


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _open_closed_streams() -> None:
    """Replace streams that the shell closed (`>&-`) with streams that discard their output."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _silence_stdout() -> None:
    """Discard output after a pipe's reader has exited, so that the interpreter exits quietly."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
