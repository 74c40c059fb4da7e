"""Parser for job files, with sections, comments, includes, environment variables and keywords.

The parser yields (option, value, file, line) and does not interpret options. The syntax rules are
those of fio 3.33: init.c `__parse_jobs_ini`, and options.c `fio_option_dup_subs` and
`fio_keyword_replace`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from writecliff.errors import ConfigError, printable
from writecliff.input_files import read_bytes, shortened, whole_number
from writecliff.workload.fiojob.arithmetic import ExpressionError, evaluate

_INCLUDES_MAX = 16  # Maximum nesting depth; deeper nesting indicates a cycle.
INCLUDED_MAX = 1000  # Maximum number of included files, counting repetitions.
# Maximum number of jobs in a file, counting separately reported threads; each needs 40 KB.
JOBS_MAX = 10_000
TOGETHER_MAX = 2000  # Maximum number of jobs in a step, as in the simulator.
VALUE_CHARACTERS_MAX = 4096  # Maximum length of an option value.


@dataclass(frozen=True)
class SourceLocation:
    """A file and a line in the file; line 0 refers to the whole file."""

    path: Path
    line: int

    def __str__(self) -> str:
        """Return `file:line` for messages."""
        return f"{self.path}:{self.line}" if self.line else str(self.path)


@dataclass(frozen=True)
class RawOption:
    """A line `name=value`, where `value` is `None` without an equals sign."""

    name: str
    value: str | None
    location: SourceLocation


@dataclass
class RawSection:
    """A `[section]`; as in fio, all names that start with "global" denote global sections."""

    name: str
    location: SourceLocation
    options: list[RawOption] = field(default_factory=list)
    is_whole: bool = True  # `False` if the section has invalid lines.

    @property
    def is_global(self) -> bool:
        """`True` for a section whose options apply to all subsequent jobs."""
        return self.name.startswith("global")


def fail(location: SourceLocation, message: str, hint: str | None = None) -> ConfigError:
    """Return the error for a problem at a location."""
    return ConfigError(f"{location}: {message}", hint=hint)


def read_sections(
    path: Path,
    environment: Mapping[str, str] | None = None,
    problems: list[ConfigError] | None = None,
) -> list[RawSection]:
    """Return the sections of a job file.

    Errors in individual lines are added to `problems`, if given.

    Raises:
        ConfigError: If the file cannot be read or is invalid; the message names the file and line.
    """
    reader = _FileReader(os.environ if environment is None else environment)
    sections: list[RawSection] = []
    for location, text in _lines(path, SourceLocation(path, 0)):
        if text.startswith("["):
            if len(sections) > JOBS_MAX:
                raise fail(location, f"the file contains more than {JOBS_MAX:,} sections")
            sections.append(RawSection(_section_name(text, location), location))
        elif not sections:
            raise fail(
                location,
                f"'{text}' is outside any section",
                "start the file with a section such as [global] or [job]",
            )
        else:
            try:
                sections[-1].options.extend(reader.options(text, location, depth=0))
            except ConfigError as problem:
                if problems is None:
                    raise
                problems.append(problem)
                sections[-1].is_whole = False
    if not any(not section.is_global for section in sections):
        raise ConfigError(f"{path}: the file contains no job", hint="add a section such as [job1]")
    return sections


def _lines(path: Path, origin: SourceLocation) -> Iterator[tuple[SourceLocation, str]]:
    """Yield non-empty lines without comments; `origin` locates the include directive."""
    try:
        text = read_bytes(path).decode("utf-8", "surrogateescape")
    except ConfigError as error:
        if origin.line:
            raise fail(origin, f"include: {error}") from None
        raise
    if "\0" in text:
        raise ConfigError(f"{path} is not a text file")
    for number, line in enumerate(text.splitlines(), start=1):
        content = re.split(r"[;#]", line, maxsplit=1)[0].strip()
        if content:
            yield SourceLocation(path, number), content


def _section_name(text: str, location: SourceLocation) -> str:
    if not text.endswith("]") or len(text) < 3:
        raise fail(
            location, f"'{text}' is not a valid section heading", "write section headings as [name]"
        )
    return printable(text[1:-1])


class _FileReader:
    """Converts lines to options, handling includes and substitutions."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._included = 0

    def options(self, text: str, location: SourceLocation, depth: int) -> Iterator[RawOption]:
        match = re.fullmatch(r"include\s+(.+)", text)
        if match:
            yield from self._include(match.group(1).strip(), location, depth)
            return
        line = self._with_keywords(self._with_environment(text, location), location)
        name, equals, value = line.partition("=")
        if len(line) > VALUE_CHARACTERS_MAX:
            raise fail(
                location, f"{shortened(name)} is longer than {VALUE_CHARACTERS_MAX} characters"
            )
        if not name.strip():
            raise fail(location, f"'{text}' contains no option name")
        if value[:1].isspace() and not re.fullmatch(r"\s*\d*\s*", value):
            # fio drops the unit of such a number, and does not recognise such a word.
            raise fail(
                location,
                f"{name.strip()}: the value must not start with a space",
                f"write {name.strip()}={value.strip()}",
            )
        yield RawOption(name.strip(), value.strip() if equals else None, location)

    def _include(self, name: str, location: SourceLocation, depth: int) -> Iterator[RawOption]:
        if depth >= _INCLUDES_MAX:
            raise fail(location, f"include {name}: files include each other")
        self._included += 1
        if self._included > INCLUDED_MAX:
            raise fail(
                location,
                f"include {name}: the limit of {INCLUDED_MAX:,} included files is exceeded",
            )
        path = Path(name)
        if not path.is_absolute() and not path.exists():
            path = location.path.parent / name  # The path is relative to the including file.
        for inner, text in _lines(path, location):
            if text.startswith("["):
                raise fail(
                    inner,
                    f"the included file contains the section {text}",
                    "included files must contain only options",
                )
            yield from self.options(text, inner, depth + 1)

    def _with_environment(self, text: str, location: SourceLocation) -> str:
        def value(match: re.Match[str]) -> str:
            name = match.group(1)
            if name not in self._environment:
                raise fail(
                    location,
                    f"environment variable {name} is not set",
                    f"set the variable: {name}=... writecliff ...",
                )
            return self._environment[name]

        return re.sub(r"\$\{([^}]*)\}", value, text)

    def _with_keywords(self, text: str, location: SourceLocation) -> str:
        """Replace $pagesize, $mb_memory and $ncpus, and evaluate arithmetic only on such lines."""
        replaced = text
        for keyword, value in _keywords().items():
            replaced = replaced.replace(keyword, str(value))
        name, equals, value_text = replaced.partition("=")
        if replaced == text or not equals or not re.search(r"[-+*/]", value_text):
            return replaced
        if "'" in value_text:
            return replaced
        try:
            return f"{name}={evaluate(value_text, _plain)}"
        except ExpressionError as problem:
            raise fail(location, str(problem), "use a sum of numbers without units") from None


def _plain(token: str) -> int:
    value = whole_number(token)
    if value is None:
        raise ExpressionError(f"'{shortened(token)}' is not a plain number")
    return value


def _keywords() -> dict[str, int]:
    """Return the values of fio's keywords on this machine."""
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "$pagesize": page,
        "$mb_memory": os.sysconf("SC_PHYS_PAGES") * page // (1024 * 1024),
        "$ncpus": os.sysconf("SC_NPROCESSORS_CONF"),
    }
