"""The command tree: one table from which the root help screen and the application are built.

Commands are named by import path and loaded when they are used, so that `writecliff --help` loads
neither cyclopts nor anything heavy. `tests/unit/cli` asserts that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

PROGRAM = "writecliff"
TAGLINE = "An SSD performance laboratory: the SNIA tests on simulated and real drives."
EPILOGUE = """\
Targets:
  sim:NAME        a simulated drive; see `writecliff device list`
  sim:PATH.toml   a simulated drive described by a file
  file:PATH       a file, through fio
  /dev/NAME       a drive, through fio; its data is destroyed, see --destroy

Exit codes: 0 done, 1 failed, 2 wrong usage, file or target, 130 interrupted.
Every command takes --json (data on stdout; an error is then one JSON object on
stderr) and --debug (full traceback). NO_COLOR is honoured."""


@dataclass(frozen=True)
class Command:
    name: str
    target: str  # "module:attribute", a function or an App
    help: str


COMMANDS = (
    Command("test", "writecliff.cli.cmd_test:app", "Run a test of the standard, or a campaign."),
    Command("suite", "writecliff.cli.cmd_suite:suite", "Run all tests of an edition on a drive."),
    Command("sweep", "writecliff.cli.cmd_sweep:sweep", "Run a test with one thing varied."),
    Command("compare", "writecliff.cli.cmd_compare:compare", "Compare drives by their runs."),
    Command("run", "writecliff.cli.cmd_run:run", "Run one workload (.fio or .toml) on a drive."),
    Command("act", "writecliff.cli.cmd_act:app", "Run ACT by its own configuration files."),
    Command("profile", "writecliff.cli.cmd_profile:app", "List and show ready workloads."),
    Command("capture", "writecliff.cli.cmd_capture:app", "Trace the file I/O of a command."),
    Command("replay", "writecliff.cli.cmd_replay:replay", "Replay a trace on a simulated drive."),
    Command(
        "placement", "writecliff.cli.cmd_placement:placement", "Find the best streams for a trace."
    ),
    Command("device", "writecliff.cli.cmd_device:app", "Show simulated drives, probe real ones."),
    Command("report", "writecliff.cli.cmd_report:report", "Write the report of a run."),
    Command("validate", "writecliff.cli.cmd_validate:app", "Check the simulator against theory."),
    Command("experiment", "writecliff.cli.cmd_experiment:experiment", "Repeat a published claim."),
    Command(
        "reproduce",
        "writecliff.cli.cmd_reproduce:reproduce",
        "Put simulated drives to published tests.",
    ),
    Command("fit", "writecliff.cli.cmd_fit:fit", "Find a drive's parameters from figures."),
    Command("bench", "writecliff.cli.cmd_bench:app", "Measure the speed of the program itself."),
    Command("demo", "writecliff.cli.cmd_demo:demo", "See a write cliff in a minute."),
)


def version() -> str:
    """The installed version, "unknown" in a source tree that was never installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(PROGRAM)
    except PackageNotFoundError:
        return "unknown"


def root_screen() -> str:
    """The text of `writecliff --help`."""
    width = max(len(command.name) for command in COMMANDS)
    lines = [f"Usage: {PROGRAM} COMMAND", "", TAGLINE, "", "Commands:"]
    lines += [f"  {command.name:{width}}  {command.help}" for command in COMMANDS]
    lines += [
        "",
        "Options:",
        "  --help, -h  Show this screen; `writecliff COMMAND --help` shows a command.",
        "  --version   Show the version.",
        "",
        EPILOGUE,
    ]
    return "\n".join(lines)


def build_app() -> App:
    """The application; commands are still not loaded."""
    from cyclopts import App

    from writecliff.cli.helptext import PlainHelp

    app = App(
        name=PROGRAM,
        help=TAGLINE,
        version=version,
        help_format="plaintext",
        help_formatter=PlainHelp(),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,  # `main` has its own words for it
    )
    for command in COMMANDS:
        app.command(command.target, name=command.name, help=command.help)
    return app
