"""A parser for fio command lines: `--name=x --rw=read job.fio --output-format=json`.

fio 3.42, init.c `parse_cmd_line`: `--name` starts a job, and options before the first job are
global, including for job files; the first job file runs together with the jobs on the command line,
and further job files run one after the other. An option starts with one or two hyphens, and its
value follows an equals sign or is the next word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from writecliff.errors import ConfigError, did_you_mean
from writecliff.workload.fiojob.options import by_name
from writecliff.workload.fiojob.steps import FioJobFile, of_sections
from writecliff.workload.fiojob.syntax import RawOption, RawSection, SourceLocation, read_sections
from writecliff.workload.fiojob.values import flag

_HERE = SourceLocation(Path("command line"), 0)
_FORMATS = ("normal", "json", "json+")

# fio options that do not concern jobs. Options that writecliff supports are parsed in this module.
_WITH_VALUE = ("output", "output-format", "section", "aux-path")
_WITHOUT_VALUE = ("parse-only", "readonly", "minimal")
_NO_EFFECT = {
    "show progress of the terminal": "eta eta-interval eta-newline status-interval debug",
    "concern fio's own process": "alloc-size max-jobs terse-version idle-prof",
}
_NO_EFFECT_FLAGS = ("warnings-fatal",)
_REFUSED = {
    "controls fio on other machines": "server client remote-config daemonize server-internal",
    "concerns only fio itself": (
        "cmdhelp enghelp showcmd cpuclock-test crctest memcpytest inflate-log merge-blktrace-only"
    ),
    "would run shell commands, which are not executed": (
        "trigger trigger-file trigger-timeout trigger-remote"
    ),
    "requests output that writecliff does not write": "latency-log bandwidth-log append-terse "
    "minimal",
    "is not supported": "profile",
}
# Options that take no value and have no effect in writecliff.
_FLAGS = frozenset(
    (
        "thread", "refill_buffers", "hipri", "fixedbufs", "registerfiles", "sqthread_poll",
        "userspace_reap", "exitall_on_error", "libblkio_vectored", "xnvme_iovec", "listen",
        "pingpong", "no_completion_thread",
    )
)  # fmt: skip


@dataclass
class FioCommand:
    """A parsed fio command line."""

    sections: list[RawSection] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    only: tuple[str, ...] = ()  # Names of the sections to run; empty for all sections.
    formats: tuple[str, ...] = ("normal",)
    output: Path | None = None
    folder: Path = Path()  # Folder for log files.
    parse_only: bool = False
    readonly: bool = False

    def load(self, capacity_bytes: int, environment: Mapping[str, str] | None = None) -> FioJobFile:
        """Return the jobs for a drive with this capacity.

        Raises:
            ConfigError: The error message lists all problems.
        """
        problems: list[ConfigError] = []
        sections = list(self.sections)
        for number, file in enumerate(self.files):
            read = read_sections(file, environment, problems)
            first = next(section for section in read if not section.is_global)
            if number:
                first.options.insert(0, RawOption("stonewall", None, first.location))
            sections += read
        if not any(not section.is_global for section in sections):
            raise ConfigError(
                "no job was specified",
                hint="add a job, for example --name=job1 --rw=randread --size=1g, or a job file",
            )
        path = self.files[0] if len(self.files) == 1 else Path("fio")
        return of_sections(path, sections, capacity_bytes, self.only, problems)


def read_command_line(words: Sequence[str]) -> FioCommand:
    """Parse the words of a command line.

    Raises:
        ConfigError: If an option is unknown or not supported.
    """
    command, left = FioCommand(), list(words)
    only: list[str] = []
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            command.files.append(Path("/dev/stdin" if word == "-" else word))
            continue
        name, equals, value = word.lstrip("-").partition("=")
        given: str | None = value if equals else None
        if given is None and left and _takes_value(name) and not left[0].startswith("--"):
            given = left.pop(0)
        if name == "section":
            only.append(given or "")
        elif not _of_command(command, name, given):
            _add_option(command, name, given)
    command.only = tuple(only)
    return command


def _takes_value(name: str) -> bool:
    if name in _FLAGS or name in (*_WITHOUT_VALUE, *_NO_EFFECT_FLAGS):
        return False
    option = by_name().get(name)
    return option is None or option.read is not flag


def _of_command(command: FioCommand, name: str, value: str | None) -> bool:
    """Apply a command option, or return `False` for a job option."""
    for reason, names in _REFUSED.items():
        if name in names.split():
            raise ConfigError(f"--{name} {reason}")
    if name in _WITH_VALUE and not value:
        raise ConfigError(f"--{name} requires a value")
    if name == "output":
        command.output = Path(str(value))
    elif name == "output-format":
        command.formats = tuple(str(value).split(","))
        for form in command.formats:
            if form not in _FORMATS:
                raise ConfigError(f"--output-format {form} is not supported",
                                  hint=f"use one of {', '.join(_FORMATS)}")  # fmt: skip
    elif name == "aux-path":
        command.folder = Path(str(value))
    elif name == "parse-only":
        command.parse_only = True
    elif name == "readonly":
        command.readonly = True
    else:
        without = " ".join((*_NO_EFFECT.values(), *_NO_EFFECT_FLAGS)).split()
        return name in without
    return True


def _add_option(command: FioCommand, name: str, value: str | None) -> None:
    if name not in by_name():
        names = (*by_name(), *_WITH_VALUE, *_WITHOUT_VALUE)
        raise ConfigError(
            f"unknown option '--{name}'",
            hint=did_you_mean(name, names, "use the supported fio options (see fio-options.md)"),
        )
    if name == "name":
        command.sections.append(RawSection(value or "", _HERE))
        return
    if not command.sections:
        command.sections.append(RawSection("global", _HERE))
    command.sections[-1].options.append(RawOption(name, value, _HERE))
