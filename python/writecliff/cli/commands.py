"""The root help screen, and the application that runs the commands.

Each command is a file, `cmd_NAME.py`. The first line of the file's docstring describes the command
on the root screen. `GROUP = "drives", 2` sets the command's group and its position in the group.
Commands in the group "hidden" are omitted from the screen. The command is the `App` named `app` in
the file, or else the function NAME. These declarations are parsed from the file's text, so that
`writecliff --help` loads neither the commands nor cyclopts. The lab's commands are in
`writecliff.lab.commands`, which is loaded by name.
"""

from __future__ import annotations

import os
from functools import cache

from writecliff import version

TYPE_CHECKING = False  # See `errors.py` for the reason.
if TYPE_CHECKING:
    from cyclopts import App

PROGRAM = "writecliff"
TAGLINE = "An SSD performance laboratory for SNIA tests on simulated and real drives."
TARGETS = (
    ("sim:NAME", "a simulated drive; see `writecliff device list`"),
    ("sim:PATH.toml", "a simulated drive described by a file"),
    ("file:PATH", "a file, through fio"),
    ("/dev/NAME", "a drive, through fio; its data is destroyed, see --destroy"),
)
EPILOGUE = """\
Exit codes: 0 success, 1 failure, 2 invalid usage, file or target, 3 an --expect
limit not met or figures worse than the --baseline, 130 interrupted.
Every command accepts --help, --json (print data as JSON on stdout and errors as
JSON on stderr) and --debug (full traceback). NO_COLOR is honoured."""

GROUPS = ("tests and suites", "workloads and traces", "drives")
DRIVE_COMMANDS = frozenset(
    ("test", "suite", "sweep", "choose", "run", "fio", "replay", "advise-streams", "characterise",
     "serve")
)  # fmt: skip
"""Commands whose drive is an option `--on`, or the first argument."""
LAB = "lab", "writecliff.lab.commands:app"
LAB_ABOUT = "Check the simulator, and reproduce published results (for research and development)."
MOVED = {
    "act": ("lab", "act"),
    "bench": ("lab", "bench"),
    "cache": ("device", "cache"),
    "detach": ("attach", "--detach"),
    "experiment": ("lab", "experiment"),
    "fit": ("lab", "fit"),
    "power-cut": ("serve", "power-cut"),
    "reliability": ("lab", "reliability"),
    "reproduce": ("lab", "reproduce"),
    "synthesise": ("trace", "synthesise"),
    "torture": ("lab", "torture"),
    "validate": ("lab", "validate"),
}
"""Current commands by their names in version 0.1, which are accepted until 0.2."""


class Command:
    """A command as declared in its file. `target` is "module:attribute"."""

    def __init__(self, position: tuple[int, int], name: str, help: str, target: str) -> None:
        """Set the fields, where `position` is (position of the group, position in the group)."""
        self.position = position  # Group position, and position within the group.
        self.name = name
        self.help = help
        self.target = target

    @property
    def shown(self) -> bool:
        """`True` if the root screen lists the command."""
        return self.position[0] < len(GROUPS)


@cache
def commands() -> tuple[Command, ...]:
    """Return all product commands, in root screen order."""
    return read_commands(__file__, "writecliff.cli", (*GROUPS, "hidden"))


def read_commands(file: str, package: str, groups: tuple[str, ...]) -> tuple[Command, ...]:
    """Return the commands in the package that contains `file`, ordered by `groups`."""
    folder = os.path.dirname(file)  # noqa: PTH120 - pathlib takes longer to import
    names = (name for name in os.listdir(folder) if name.startswith("cmd_"))
    read = (_command(f"{folder}/{name}", package, groups) for name in names)
    return tuple(sorted(read, key=lambda command: (command.position, command.name)))


def _command(path: str, package: str, groups: tuple[str, ...]) -> Command:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    stem = os.path.basename(path).removeprefix("cmd_").removesuffix(".py")  # noqa: PTH119
    help_line = text.removeprefix('"""').split("\n", 1)[0].removesuffix('"""')
    group, order = text.split('\nGROUP = "', 1)[1].split("\n", 1)[0].split('", ')
    attribute = "app" if "\napp = App(" in text else stem
    return Command(
        position=(groups.index(group), int(order)),
        name=stem.replace("_", "-"),
        help=help_line,
        target=f"{package}.cmd_{stem}:{attribute}",
    )


def root_screen() -> str:
    """Return the text of `writecliff --help`."""
    width = max(len(command.name) for command in commands())
    lines = [f"Usage: {PROGRAM} COMMAND", "", TAGLINE]
    for number, group in enumerate(GROUPS):
        members = (command for command in commands() if command.position[0] == number)
        lines += ["", f"{group.capitalize()}:"]
        lines += [f"  {command.name:{width}}  {command.help}" for command in members]
    simulated, described, file, device = (name for name, _ in TARGETS)
    lines += [
        "",
        f"Drives: {simulated} and {described} are simulated; {file} and {device} are",
        "tested with fio, which destroys their data (see --destroy). Name the",
        "drive with --on, or as the first argument.",
        EPILOGUE,
        f"`{PROGRAM} --version` prints the version; `{PROGRAM} lab` runs research tools.",
    ]
    return "\n".join(lines)


def build_app() -> App:
    """Return the application, but do not load its commands."""
    from cyclopts import Parameter

    from writecliff.cli.helptext import AppWithExamples, PlainHelp

    app = AppWithExamples(
        name=PROGRAM,
        help=TAGLINE,
        version=version,
        help_format="plaintext",
        help_formatter=PlainHelp(),
        default_parameter=Parameter(negative=()),  # By default, flags have no --no-FLAG form.
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        suppress_keyboard_interrupt=False,  # `main` reports it
    )
    for command in commands():
        app.command(command.target, name=command.name)
    name, target = LAB
    app.command(target, name=name)
    return app


def names_below(app: App, words: tuple[str, ...]) -> list[str]:
    """Return the subcommand names of the command `words`."""
    for word in words:
        app = app[word]
    return [name for name in app if not name.startswith("-")]
