"""ACT's configuration files: read as options of the test, and written as ACT echoes them.

The syntax is `name: value`, a `#` begins a comment. The drive comes from `--on`, so `device-names`
is only compared with it. Names of all versions from 2.x to 6.x are known; those that mean nothing
here (I/O schedulers, kinds of buffers) are passed over with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from writecliff.errors import ConfigError

WHOLE = {
    "test-duration-sec", "report-interval-sec", "read-reqs-per-sec", "write-reqs-per-sec",
    "service-threads", "record-bytes", "record-bytes-range-max", "large-block-op-kbytes",
    "replication-factor", "update-pct", "defrag-lwm-pct", "compress-pct",
    "tomb-raider-sleep-usec", "max-lag-sec", "num-queues", "threads-per-queue",
    "large-block-ops-per-sec", "read-req-num-512-blocks",
}  # fmt: skip
SWITCHES = {
    "microsecond-histograms", "no-defrag-reads", "disable-odsync", "commit-to-device",
    "tomb-raider",
}  # fmt: skip
# Without effect on a drive behind another host; by what they are about.
WITHOUT_EFFECT = {
    "scheduler-mode": "the kernel's I/O scheduler stays as it is",
    "use-valloc": "buffers are the load generator's",
    "num-write-buffers": "data are random",
    "queue-per-device": "there is one drive",
    "max-reqs-queued": "the lag decides",
    "commit-min-bytes": "records are committed in whole sectors",
    "file-size-mbytes": "give --on file:PATH --size",
}
DEVICES = "device-names"
OLD = {"num-queues", "threads-per-queue", "large-block-ops-per-sec", "read-req-num-512-blocks",
       "num-write-buffers", "queue-per-device", "use-valloc"}  # fmt: skip


@dataclass(frozen=True)
class ActFile:
    """What a configuration file says, as options of the test `act`."""

    options: Mapping[str, Any]
    devices: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def read_config(path: Path) -> ActFile:
    """Read a file. Raises ConfigError with file and line: no such file, unknown name, bad value."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text (byte {error.start})") from None
    options: dict[str, Any] = {}
    devices: tuple[str, ...] = ()
    notes, old = [], False
    for number, line in enumerate(text.splitlines(), 1):
        name, value = _split(line)
        if not name:
            continue
        where = f"{path}:{number}"
        if name == DEVICES:
            devices = tuple(value.replace(";", " ").replace(",", " ").split())
            continue
        old = old or name in OLD
        if name in WITHOUT_EFFECT:
            notes.append(f"{where}: {name} has no effect: {WITHOUT_EFFECT[name]}")
            continue
        options[name.replace("-", "_")] = _value(name, value, where)
    if len(devices) > 1:
        raise ConfigError(
            f"{path} names {len(devices)} devices",
            hint="rates are totals over all devices: test one at a time, with its share",
        )
    if old:
        options["model"] = "3.x"
    return ActFile(options, devices, tuple(notes))


def _split(line: str) -> tuple[str, str]:
    """A line's name and value, without comment; ("", "") for a line that says nothing."""
    said = line.partition("#")[0].strip()
    name, colon, value = said.partition(":")
    if not colon:
        name, _, value = said.partition(" ")
    return name.strip(), value.strip()


def _value(name: str, text: str, where: str) -> Any:
    word = text.split(maxsplit=1)[0] if text.split() else ""
    if name in SWITCHES:
        if word not in ("yes", "no"):
            raise ConfigError(f"{where}: {name} is yes or no, not '{text}'")
        return word == "yes"
    if name in WHOLE:
        if not word.isdigit():
            raise ConfigError(f"{where}: {name} is a whole number, not '{text}'")
        return int(word)
    known = sorted(WHOLE | SWITCHES | set(WITHOUT_EFFECT) | {DEVICES})
    raise ConfigError.unknown("item", name, known, where=where)


def config_lines(options: Any, device: str) -> list[str]:
    """The options as ACT's configuration file has them, for its log."""
    names = [
        "service-threads", "num-queues", "threads-per-queue", "test-duration-sec",
        "report-interval-sec", "microsecond-histograms", "read-reqs-per-sec",
        "write-reqs-per-sec", "record-bytes", "record-bytes-range-max", "large-block-op-kbytes",
        "replication-factor", "update-pct", "defrag-lwm-pct", "no-defrag-reads", "compress-pct",
        "disable-odsync", "commit-to-device", "tomb-raider", "tomb-raider-sleep-usec",
        "max-lag-sec",
    ]  # fmt: skip
    lines = [f"{DEVICES}: {device}", "num-devices: 1"]
    left_out = {"service-threads"} if options.model == "3.x" else OLD
    for name in names:
        if name not in left_out:
            lines.append(f"{name}: {_text(getattr(options, name.replace('-', '_')))}")
    return lines


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value or 0)
