"""Plain-text help screens that show each option on a line, with its description below.

cyclopts calls the formatter in this module. The default cyclopts format has boxes and colours,
which interfere with pipes and screen readers. The plain cyclopts format wraps text at unsuitable
positions.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from cyclopts import App

from writecliff.cli.examples import example_lines

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

WIDTH_MIN, WIDTH_MAX = 20, 88  # Narrower lines would break words.
# Value placeholders: by option name for texts and numbers, and by the unit that ends the name.
_METAVARS = {
    "on": "DEVICE", "candidates": "DEVICE", "device": "DEVICE", "destroy": "SERIAL",
    "expect": "LIMIT", "limit": "LIMIT", "weight": "FIGURE=WEIGHT", "vary": "KEY=VALUES",
    "set": "OPTION=VALUE", "values": "VALUES", "tests": "TESTS", "test": "TEST",
    "scheduler": "ADDRESS", "listen": "ADDRESS", "nbd": "ADDRESS", "metrics": "ADDRESS",
    "store": "STORE", "size": "SIZE", "capacity": "SIZE", "memory": "SIZE", "slc-cache": "SIZE",
    "tbw": "SIZE", "writes-per-day": "SIZE", "duration": "DURATION", "for": "DURATION",
    "cut-after": "DURATION", "read-latency": "DURATION", "write-latency": "DURATION",
    "since": "TIME", "sequential-read": "RATE", "sequential-write": "RATE",
    "write-after-cache": "RATE", "write-while-folding": "RATE", "precondition": "STATE",
    "where": "CONDITION", "sort": "COLUMN", "columns": "COLUMNS", "format": "FORMAT",
    "to": "FORMAT", "tag": "TAG", "sponsor": "NAME", "streams": "RULES", "data-file": "PATH",
    "allocator": "POLICY", "allow-host": "NQN", "app": "PROGRAM", "assign": "SCHEME",
    "capture": "PATH", "case": "CASES", "cell": "CELL", "check": "DRIVE", "counts": "COUNTS",
    "dram": "yes|no", "drive": "NAME", "end": "CONDITIONS", "file-system": "NAME",
    "form-factor": "NAME", "host-nqn": "NQN", "interface": "INTERFACE", "kind": "KIND",
    "load": "LOAD", "member": "NAME", "mtbf": "DURATION", "name": "NAME", "nand-type": "NAME",
    "note": "REMARK",
    "overprovision": "PERCENTS", "parts": "PARTS", "power-loss-protection": "yes|no",
    "prepare": "COMMAND", "profile": "PROFILE", "profiles": "PROFILES", "queue-depths": "DEPTHS",
    "random-read": "IOPS", "random-write": "IOPS", "rates-iops": "RATES",
    "server-depths": "DEPTHS", "sustained-write": "IOPS", "thetas": "EXPONENTS",
    "threads": "COUNTS", "token": "TOKEN", "uber": "RATE", "volume": "VOLUME",
    "writeback": "POLICY", "year": "YEAR",
}  # fmt: skip
_UNITS = {
    "pct": "PERCENT", "pcts": "PERCENTS", "seconds": "SECONDS", "minutes": "MINUTES",
    "hours": "HOURS", "years": "YEARS", "ms": "MS", "gib": "GIB", "kib": "KIB", "seed": "SEED",
    "sec": "SECONDS", "capacities": "CAPACITIES", "fills": "FILLS", "iops": "IOPS",
}  # fmt: skip
_NUMBERS = {
    "capture-step": "SECONDS", "fill": "PERCENT", "gb-per-day": "GB", "kwh-price": "DOLLARS",
    "large-block-ops-per-sec": "OPERATIONS", "mistag": "PERCENT", "power-offset": "SECONDS",
    "price": "DOLLARS", "read-reqs-per-sec": "RECORDS", "rest": "SECONDS", "watts": "WATTS",
    "write-reqs-per-sec": "RECORDS",
}  # fmt: skip
_OF_TYPE = {"STR": "TEXT", "INT": "N", "FLOAT": "FACTOR"}


def _metavar(name: str, given: str) -> str:
    """Return the placeholder for an option's value, where `given` is the cyclopts placeholder."""
    plain = given.removesuffix("...")
    if plain not in _OF_TYPE:
        return given
    name = name.lstrip("-")
    unit = _UNITS.get(name.rpartition("-")[2], _OF_TYPE[plain])
    names = _METAVARS if plain == "STR" else _NUMBERS
    return names.get(name, unit) + given[len(plain) :]


def _width(console: Console) -> int:
    """Return the width of a text line, independent of COLUMNS."""
    return max(WIDTH_MIN, min(console.width, WIDTH_MAX))


def _text(value: Any) -> str:
    """Return the plain text of a cyclopts value, which is a string, rich Text or InlineText."""
    if value is None:
        return ""
    if hasattr(value, "primary_renderable"):
        return " ".join([_text(value.primary_renderable), *map(_text, value.texts)]).strip()
    return str(getattr(value, "plain", value)).strip()


class AppWithExamples(App):
    """An application that prints examples at the end of its help screens."""

    def help_print(self, tokens: Any = None, *, console: Any = None) -> None:
        """Print the help and the examples of the command named by `tokens`."""
        super().help_print(tokens, console=console)
        chain, apps, _ = self.parse_commands(tokens)
        if lines := example_lines(self.name[0], " ".join(chain)):
            with self.app_stack(apps, overrides={"_console": console}):
                file = apps[-1].console.file
            file.write("\n".join(lines) + "\n")


class PlainHelp:
    """A help formatter for cyclopts."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print a panel of options or commands."""
        if not panel.entries:
            return
        lines = ["Options:" if panel.title == "Parameters" else f"{panel.title}:"]
        if panel.format == "parameter":
            for entry in panel.entries:
                lines += self._option(entry, _width(console))
        else:
            entries = [e for e in panel.entries if e.positive_names[:1] != ("--help",)]
            width = max(len(entry.positive_names[0]) for entry in entries)
            for entry in entries:
                first = _text(entry.description).split("\n\n")[0]
                lines.append(f"  {entry.positive_names[0]:{width}}  {first}")
        self._print(console, "\n".join(lines) + "\n")

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print the usage line."""
        self._print(console, f"Usage: {_text(usage).removeprefix('Usage:').strip()}\n")

    def render_description(self, console: Console, options: ConsoleOptions, text: Any) -> None:
        """Print a command's description, in wrapped paragraphs."""
        width = _width(console)
        paragraphs = _text(text).split("\n\n")
        for paragraph in paragraphs:
            self._print(
                console,
                textwrap.fill(" ".join(paragraph.split()), width, break_on_hyphens=False) + "\n",
            )

    @staticmethod
    def _option(entry: HelpEntry, width: int) -> list[str]:
        label = ", ".join(entry.display_labels)
        if entry.choices:
            label = f"{label} {'|'.join(entry.choices)}"
        elif entry.metavar and not entry.positional_label:
            label += f" {_metavar(entry.positive_names[0], entry.metavar)}"
        if entry.required:
            label += "  (required)"
        text = " ".join(_text(entry.description).split())
        if entry.default not in (None, "()", "False", "None", "True") and "default: " not in text:
            value = entry.default.removesuffix(".0")
            text = f"{text.removesuffix('.')} (default: {value})."
        indent = " " * 6
        body = textwrap.wrap(
            text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )
        return [f"  {label}", *body]

    @staticmethod
    def _print(console: Console, text: str) -> None:
        console.file.write(f"{text}\n")  # With COLUMNS=0, rich would print nothing.
