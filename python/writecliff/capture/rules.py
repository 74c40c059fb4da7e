"""Rules that assign a trace's writes to streams, read from a TOML file.

    [[rule]]
    path = "*/commitlog/*"
    stream = 1
    name = "commit log"

A rule has one or more conditions, which must all hold: `path`, `thread`, `process` (globs in which
`*` matches slashes; a path relative to the root also matches with a leading slash), `hint` (a
number from 0 to 5 or a hint name), `min_size` and `max_size` (inclusive, in bytes or as text such
as "64 MiB", compared with the file's largest size in the trace). The first matching rule applies.
If no rule matches, the stream is `default` (0 unless the file sets `default`).

The file size represents information that a program has when it starts writing; an LSM tree, for
example, knows the total size of the tables that it merges. In a trace, the file size is known only
afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from writecliff.capture.trace import STREAM_THREAD, Trace, codes
from writecliff.errors import ConfigError
from writecliff.input_files import parse_toml, read_text, shortened
from writecliff.units import parse_size

PRESETS = Path(__file__).with_name("rules")
HINTS = {"not set": 0, "none": 1, "short": 2, "medium": 3, "long": 4, "extreme": 5}
STREAMS_MAX = 1 << 16
FILE_BYTES_MAX = 1 << 62
_GLOBS = ("path", "thread", "process")
_KEYS = (*_GLOBS, "hint", "min_size", "max_size", "stream", "name")
_TOP = ("name", "about", "default", "rule")


@dataclass(frozen=True)
class Rule:
    """A rule: a stream, the name of its data, and conditions (`None` matches everything)."""

    stream: int
    name: str
    path: re.Pattern[str] | None = None
    thread: re.Pattern[str] | None = None
    process: re.Pattern[str] | None = None
    hint: int | None = None
    min_size: int | None = None
    max_size: int | None = None

    def matches(self, label: str, word: str) -> bool:
        """Return `True` if the glob for `label` ("path", "thread" or "process") matches `word`."""
        pattern: re.Pattern[str] | None = getattr(self, label)
        words = (word, f"/{word}") if label == "path" else (word,)
        return pattern is None or any(pattern.match(candidate) for candidate in words)


@dataclass(frozen=True)
class Rules:
    """The rules in a file, in order, and the default stream."""

    name: str
    rules: tuple[Rule, ...]
    default: int = 0

    @property
    def streams(self) -> dict[int, str]:
        """Stream numbers that the rules assign, with the names of the streams' data."""
        names: dict[int, list[str]] = {self.default: []}
        for rule in self.rules:
            kinds = names.setdefault(rule.stream, [])
            if rule.name not in kinds:
                kinds.append(rule.name)
        return {s: ", ".join(names[s]) or "everything else" for s in sorted(names)}

    def assign(self, table: pa.Table) -> NDArray[np.uint16]:
        """Return the stream of every row in a trace, treating every row as a write."""
        if table.num_rows == 0:
            return np.zeros(0, np.uint16)
        labels = {name: codes(table, name) for name in _GLOBS}
        hint = table.column("hint").fill_null(-1).to_numpy()
        shown, size = self.size_classes(table)
        return self.streams_of(labels, hint, np.zeros(1, np.int64) if size is None else shown[size])

    def streams_of(
        self,
        labels: Mapping[str, tuple[NDArray[Any], list[str]]],
        hint: NDArray[Any],
        size: NDArray[Any],
    ) -> NDArray[np.uint16]:
        """Return the stream of each write.

        Args:
            labels: Path, thread and process as indices, and the words that the indices refer to.
            hint: Write-lifetime hint of each write, or -1 if the write has no hint.
            size: Largest size in bytes of each write's file.
        """
        streams = np.full(len(hint), self.default, np.uint16)
        for rule in reversed(self.rules):
            holds = np.ones(len(hint), bool)
            for name in _GLOBS:
                if getattr(rule, name) is not None:
                    indices, words = labels[name]
                    holds &= np.array([rule.matches(name, word) for word in words], bool)[indices]
            if rule.hint is not None:
                holds &= hint == rule.hint
            if rule.min_size is not None:
                holds &= size >= rule.min_size
            if rule.max_size is not None:
                holds &= size <= rule.max_size
            streams[holds] = rule.stream
        return streams

    def size_classes(self, table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.uint16] | None]:
        """Return the size classes that the rules distinguish, and each row's class.

        A row's class depends on the largest size of the row's file. Each class is represented by a
        file size in bytes. The second value is `None` if no rule restricts file sizes.
        """
        limits = {r.min_size for r in self.rules if r.min_size is not None}
        limits |= {r.max_size + 1 for r in self.rules if r.max_size is not None}
        if not limits:
            return np.zeros(1, np.int64), None
        ordered = sorted(limits)
        ops, names = codes(table, "op")
        file = table.column("file").to_numpy()
        end = table.column("offset_bytes").to_numpy() + table.column("length_bytes").to_numpy()
        grows = ops == names.index("write") if "write" in names else np.zeros(len(ops), bool)
        sizes = np.zeros(int(file.max()) + 1, np.int64)
        np.maximum.at(sizes, file[grows], end[grows])
        of_file = np.searchsorted(ordered, sizes, side="right").astype(np.uint16)
        return np.array([0, *ordered], np.int64), of_file[file]


def presets() -> list[str]:
    """Return the names of the rule presets included in the package."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def load_rules(path: Path | str) -> Rules:
    """Load rules from a file, or load a preset by name.

    Raises:
        ConfigError: If the file or preset is missing or invalid. The message names the file and the
            rule.
    """
    given = Path(path)
    if given.suffix != ".toml" and not given.is_file():
        if str(path) not in presets():
            raise ConfigError.unknown("rules", str(path), presets())
        given = PRESETS / f"{path}.toml"
    return parse_rules(read_text(given), str(given))


PRESET_OF = {"rocksdb": "rocksdb-native", "postgresql": "postgres", "cassandra": "cassandra"}
"""Presets of rules, by the start of the program's name in the metadata of a trace."""


def rules_of(trace: Trace) -> Rules | None:
    """Return rules derived from a trace, or `None`.

    The rules are derived from the program's write hints, or else from the stream identifiers that
    clients of a served drive used. Otherwise, the preset for the program applies.
    """
    given = set(trace.table.column("hint").unique().to_pylist())
    words = [name for name, number in HINTS.items() if number in given and number > HINTS["none"]]
    if words:
        hints = (Rule(n, f"hint {word}", hint=HINTS[word]) for n, word in enumerate(words, 1))
        return Rules("the program's write hints", tuple(hints))
    if trace.is_block and (used := _streams_used(trace)):
        return Rules("the host's stream identifiers", used)
    program = str(trace.metadata.get("program", "")).lower()
    for beginning, preset in PRESET_OF.items():
        if program.startswith(beginning):
            return load_rules(preset)
    return None


def _streams_used(trace: Trace) -> tuple[Rule, ...]:
    """Return a rule for each non-default stream that clients of a served drive used."""
    threads, names = codes(trace.table, "thread")
    ops, words = codes(trace.table, "op")
    writes = ops == (words.index("write") if "write" in words else -1)
    rules = []
    for name in (names[index] for index in np.unique(threads[writes])):
        number = name.removeprefix(STREAM_THREAD)
        if number.isdecimal() and 0 < int(number) < STREAMS_MAX:
            rules.append(Rule(int(number), name, thread=re.compile(translate(name))))
    return tuple(sorted(rules, key=lambda rule: rule.stream))


def parse_rules(text: str, where: str) -> Rules:
    """Parse rules in TOML format.

    Raises:
        ConfigError: If the rules are invalid. The message names `where`, and the line if possible.
    """
    document = parse_toml(text, where)
    _check_keys(document, _TOP, where)
    entries = document.get("rule", [])
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{where} contains no rules", hint="add a [[rule]] table for each rule")
    lines = [n for n, line in enumerate(text.splitlines(), 1) if _HEADING.match(line)]
    rules = []
    for index, entry in enumerate(entries):
        at = f"{where}:{lines[index]}" if len(lines) == len(entries) else where
        rules.append(_rule(entry, f"{at}: rule {index + 1}"))
    name = _name(document, Path(where).stem, where)
    return Rules(name, tuple(rules), _stream(document, "default", where, 0))


_HEADING = re.compile(r"\s*\[\[\s*(?:rule|\"rule\"|'rule')\s*\]\]")


def _check_keys(table: Mapping[str, object], names: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in names:
            raise ConfigError.unknown("key", key, names, where=where)


def _rule(entry: Any, where: str) -> Rule:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where} is not a table", hint="write each rule as a [[rule]] table")
    _check_keys(entry, _KEYS, where)
    if "stream" not in entry:
        raise ConfigError(
            f"{where}: 'stream' is missing", hint="add the stream number (0 is the default stream)"
        )
    stream = _stream(entry, "stream", where, 0)
    globs = {key: _glob(entry[key], f"{where}: {key}") for key in _GLOBS if key in entry}
    sizes = {
        key: _size(entry[key], f"{where}: {key}")
        for key in ("min_size", "max_size")
        if key in entry
    }
    if len(sizes) == 2 and sizes["min_size"] > sizes["max_size"]:
        raise ConfigError(f"{where}: min_size is greater than max_size")
    hint = _hint(entry["hint"], where) if "hint" in entry else None
    name = _name(entry, f"stream {stream}", where)
    return Rule(stream=stream, name=name, hint=hint, **globs, **sizes)  # type: ignore[arg-type]


def _name(table: Mapping[str, object], default: str, where: str) -> str:
    value = table.get("name", default)
    if not isinstance(value, str):
        raise ConfigError(
            f"{where}: name is {shortened(value)}, not a string",
            hint="write the name as a string in quotes",
        )
    return value


def _stream(table: Mapping[str, object], key: str, where: str, default: int) -> int:
    value = table.get(key, default)
    if type(value) is not int or not 0 <= value < STREAMS_MAX:
        raise ConfigError(
            f"{where}: {key} is {shortened(value)}, which is not a valid stream",
            hint=f"use a number from 0 to {STREAMS_MAX - 1}",
        )
    return value


def _glob(value: Any, where: str) -> re.Pattern[str]:
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f"{where} is {shortened(value)}, which is not a glob",
            hint='specify a glob, for example "*/pg_wal/*"',
        )
    return re.compile(translate(value))


def _hint(value: Any, where: str) -> int:
    if type(value) is int and 0 <= value <= 5:
        return value
    if isinstance(value, str):
        if value in HINTS:
            return HINTS[value]
        raise ConfigError.unknown("hint", value, HINTS, where=where)
    names = ", ".join(f"{number} {name}" for name, number in HINTS.items())
    raise ConfigError(
        f"{where}: hint is {shortened(value)}, which is not a write hint",
        hint=f"use one of {names}",
    )


def _size(value: Any, where: str) -> int:
    if isinstance(value, str):
        try:
            value = parse_size(value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}", hint=error.hint) from None
    if type(value) is not int or not 0 <= value <= FILE_BYTES_MAX:
        raise ConfigError(
            f"{where} is {shortened(value)}, which is not a valid size",
            hint='specify the size in bytes, or as text such as "64 MiB"',
        )
    return value
