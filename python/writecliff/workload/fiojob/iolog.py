"""Reader for fio's I/O logs, versions 2 and 3 (`read_iolog`).

fio 3.42, iolog.c and HOWTO "Trace file format". A version 2 log has pauses (`wait`) instead of
times, each counted from the previous pause, whereas version 3 has a time in microseconds on each
line. In writecliff, I/Os arrive at their times whether or not earlier I/Os are complete, but fio
shifts all later I/Os. Pauses are in microseconds, as stated in the HOWTO, whereas iolog.c sleeps
until that many milliseconds after fio's start. The trace reader (`crates/traces`) accepts the same
line formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from writecliff import units
from writecliff.errors import ConfigError
from writecliff.input_files import read_bytes, shortened, whole_number
from writecliff.workload.fiojob.blocks import SECTOR_BYTES
from writecliff.workload.fiojob.settings import Settings
from writecliff.workload.fiojob.syntax import SourceLocation, fail
from writecliff.workload.model import IoLog

_US = 1000
_COMMAND_BYTES = 1 << 32  # Exclusive upper bound on the command length.
_SLOW_IOPS, _FAST_IOPS = 10.0, 2e6  # Plausible rates for the log of a fio job.
_MANY_IOS, _LONG_NS = 100, 600 * 10**9  # Fewer I/Os in a shorter time may simply be slow.
LOG_BYTES_MAX = 64 << 20  # Maximum log size: two million I/Os, which take 1 GB as Python numbers.
_HEADER = re.compile(r"fio version (\d+) iolog")
_FILE_ACTIONS = ("add", "open", "close", "unlink")
_FLUSHES = ("sync", "datasync")
_LETTERS = {"read": "r", "write": "w", "trim": "t", **dict.fromkeys(_FLUSHES, "f")}
_ACTIONS = {*_FILE_ACTIONS, *_LETTERS, "wait"}
_BLKTRACE = (b"\x07\x61\x74\x65", b"\x65\x61\x74\x07")  # Magic number in both byte orders.


@dataclass
class _Rows:
    letters: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    times_us: list[int] = field(default_factory=list)


def read_io_log(settings: Settings) -> IoLog:
    """Read the I/Os selected by `read_iolog`.

    Raises:
        ConfigError: If the log cannot be read or is invalid; the message names the file and line.
    """
    path = Path(str(settings.read_iolog))
    if ":" in path.name and not path.exists():
        raise settings.error(
            "read_iolog", "read_iolog lists several logs", "specify a single log for each job"
        )
    skipped = _skipped(settings)
    rows, files, now_us, version = _Rows(), set[str](), 0, 0
    for location, words in _lines(settings, path):
        if not version:
            version = _version(location, words)
            continue
        if version == 3:
            now_us = max(now_us, _whole(location, words.pop(0)))
        name, action, numbers = _action(location, words, version)
        if action in _FILE_ACTIONS:
            continue
        offset, length = (_whole(location, number) for number in numbers)
        if action == "wait":
            if version == 3:
                raise fail(location, "the action wait is allowed only in version 2 logs")
            now_us += offset
        elif action not in skipped:
            files.add(name)
            _add(rows, settings, location, _LETTERS[action], offset, length)
            rows.times_us.append(now_us)
    _check(settings, path, rows, files, version)
    speed = settings.replay_time_scale / 100
    paced = not settings.replay_no_stall and any(rows.times_us)
    first = rows.times_us[0]
    if paced and (doubt := doubt_of_times(len(rows.times_us), (rows.times_us[-1] - first) * _US)):
        settings.note(f"{path.name}: {doubt}")
    times = (round((time - first) * _US / speed) for time in rows.times_us)
    return IoLog(
        "".join(rows.letters),
        tuple(rows.offsets),
        tuple(rows.lengths),
        tuple(times) if paced else (),
    )


def doubt_of_times(ios: int, span_ns: int) -> str | None:
    """Return a warning if a log's implied rate shows that its times are not in microseconds.

    The result is `None` if the rate is plausible. `span_ns` is the time from the first to the last
    I/O.
    """
    rate = ios / (span_ns / 1e9) if span_ns > 0 else 0.0
    is_slow = 0 < rate < _SLOW_IOPS and (ios >= _MANY_IOS or span_ns >= _LONG_NS)
    if not is_slow and not (rate > _FAST_IOPS and ios >= _MANY_IOS):
        return None
    unit, change = ("nanoseconds", "divide") if is_slow else ("milliseconds", "multiply")
    return (
        f"{ios:,} I/Os in {units.duration(span_ns)} are {units.number(rate, 3)} a second: fio's"
        f" times are microseconds; if these are {unit}, {change} them by 1,000"
    )


def _action(location: SourceLocation, words: list[str], version: int) -> tuple[str, str, list[str]]:
    """Return (file, action, [offset, length]); pauses lack a length, flushes lack both."""
    # The wait applies to the whole log, so no file is named.
    if len(words) == 2 and words[0] == "wait":
        words = ["", *words]
    name, action, *numbers = [*words, "", ""] if len(words) < 2 else words
    if (action == "wait" and len(numbers) == 1) or (action in _FLUSHES and not numbers):
        numbers = [*numbers, "0", "0"][:2]
    if len(numbers) != (0 if action in _FILE_ACTIONS else 2) or action not in _ACTIONS:
        raise fail(
            location, f"'{' '.join(words)}' is not a valid action in a version {version} log"
        )
    return name, action, numbers


def _lines(settings: Settings, path: Path) -> Iterator[tuple[SourceLocation, list[str]]]:
    try:
        data = read_bytes(path, LOG_BYTES_MAX)
    except ConfigError as error:
        raise settings.error("read_iolog", f"read_iolog: {error}") from None
    if data[:4] in _BLKTRACE or data[1:4] == _BLKTRACE[0][1:]:
        raise settings.error(
            "read_iolog", f"{path} is a binary block trace", "use a log that fio wrote"
        )
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if words := line.split():
            yield SourceLocation(path, number), words


def _version(location: SourceLocation, words: list[str]) -> int:
    match = _HEADER.fullmatch(" ".join(words))
    if match is None or match.group(1) not in ("2", "3"):
        raise fail(
            location,
            "the file is not a fio I/O log of version 2 or 3",
            "the first line of such a log is 'fio version 3 iolog'",
        )
    return int(match.group(1))


def _whole(location: SourceLocation, text: str) -> int:
    value = whole_number(text)
    if value is None:
        raise fail(location, f"'{shortened(text)}' is not a whole number")
    return value


def _skipped(settings: Settings) -> set[str]:
    names = {part.strip() for part in (settings.replay_skip or "").split(",") if part.strip()}
    if names - {"read", "write", "trim", "sync"}:
        raise settings.error(
            "replay_skip",
            f"replay_skip={settings.replay_skip} contains an unknown operation",
            "use read, write, trim or sync",
        )
    return names | ({"datasync"} if "sync" in names else set())


def _add(
    rows: _Rows, settings: Settings, location: SourceLocation, letter: str, offset: int, length: int
) -> None:
    if letter == "f":
        offset = length = 0
    elif length <= 0:
        raise fail(location, "the log contains an I/O of 0 bytes")
    elif letter != "t" and length >= _COMMAND_BYTES:
        raise fail(
            location, f"an I/O of {length} bytes is too large", "use I/Os smaller than 4 GiB"
        )
    offset //= settings.replay_scale
    if settings.replay_align:
        offset -= offset % settings.replay_align
    if offset % SECTOR_BYTES or length % SECTOR_BYTES:
        raise fail(
            location,
            f"offset {offset} or length {length} is not a multiple of {SECTOR_BYTES} bytes",
            "set replay_align=512 to round offsets down",
        )
    rows.letters.append(letter)
    rows.offsets.append(offset)
    rows.lengths.append(length)


def _check(settings: Settings, path: Path, rows: _Rows, files: set[str], version: int) -> None:
    if not version or not any(letter != "f" for letter in rows.letters):
        raise ConfigError(f"{path} contains no I/Os")
    if len(files) > 1 and settings.replay_redirect is None:
        raise settings.error(
            "read_iolog",
            f"{path} names {len(files)} files, but a run uses a single drive",
            "set replay_redirect=DRIVE to replay all files on the drive under test",
        )
