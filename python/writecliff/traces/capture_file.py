"""Reader for I/O captures, which are traces in any format or tables of streams.

A table is a TOML file:

    name = "web portal"
    source = "who published it, where"
    streams = [
      { access = "random", operation = "read", size = "4 KiB", share = "60 %" },
      { access = "sequential", operation = "write", size = "64 KiB", share = "40 %" },
    ]
    [[step]]                # optional (default: a single step)
    duration = "5 min"
    iops = 1200             # optional
    queue_depth = 6         # optional
    shares = ["70 %", "30 %"]  # optional: percentages of the streams in this step, in order
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from writecliff.errors import ConfigError
from writecliff.input_files import read_toml
from writecliff.traces.examples import trace_path
from writecliff.traces.io_capture import (
    STEP_S,
    CaptureStep,
    IoCapture,
    IoStream,
    captured,
)
from writecliff.traces.source import open_trace
from writecliff.units import parse_size, parse_time

ROWS_MAX = 10_000  # Maximum number of streams, and of time steps.
ALONE_S = 60.0  # Duration of the single time step in a table without time steps.
_TOP = ("name", "source", "streams", "step")
_STREAM = ("access", "operation", "size", "share")
_STEP = ("duration", "iops", "queue_depth", "shares")
_ACCESS = ("random", "sequential")
_OPERATION = ("read", "write")


def load_capture(path: Path, *, step_s: float | None = None) -> IoCapture:
    """Read a capture, which is a table if the suffix is .toml, otherwise a trace in any format.

    Args:
        path: Path of the capture file.
        step_s: Time step length for traces, in s (default: depends on the trace duration).

    Raises:
        ConfigError: If the file is malformed or the step length is not allowed.
    """
    path = trace_path(path)
    if path.suffix == ".toml":
        if step_s is not None:
            raise ConfigError(
                f"{path} defines its own time steps, so --capture-step does not apply",
                hint="drop --capture-step",
            )
        return read_table(path)
    if step_s is not None and (not step_s.is_integer() or not STEP_S[0] <= step_s <= STEP_S[1]):
        raise ConfigError(f"--capture-step must be 1 to 600 whole seconds, not {step_s:g}")
    whole = None if step_s is None else int(step_s)
    return captured(open_trace(path), path, step_s=whole)


def read_table(path: Path) -> IoCapture:
    """Read a table of streams.

    Raises:
        ConfigError: If the table is malformed; the message names the file.
    """
    data = read_toml(path)
    try:
        return _Table(path, data).capture()
    except ConfigError as error:
        where = str(path)
        if not str(error).startswith(where):
            raise ConfigError(f"{where}: {error}", hint=error.hint) from None
        raise


class _Table:
    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path = path
        self.data = data

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise ConfigError(f"{self.path}: {message}", hint=hint)

    def checked(self, table: Any, names: Sequence[str], where: str) -> Mapping[str, Any]:
        if not isinstance(table, Mapping):
            self.fail(f"{where} is not a table")
        for name in table:
            if name not in names:
                raise ConfigError.unknown("key", name, names, where=f"{self.path}, {where}")
        return table

    def number(self, value: Any, where: str) -> float:
        """Check that a value is a positive number, and return it."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            self.fail(f"{where} is not a number greater than 0")
        return float(value)

    def share(self, value: Any, where: str) -> float:
        """Return a fraction, given as "30 %" or in a unit common to all fractions."""
        if isinstance(value, str):
            try:
                value = float(value.strip().removesuffix("%"))
            except ValueError:
                self.fail(f"{where}: '{value}' is not a percentage", 'write it as "30 %"')
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            self.fail(f"{where} is not a non-negative number")
        return float(value)

    def capture(self) -> IoCapture:
        top = self.checked(self.data, _TOP, "the file")
        rows = top.get("streams") or self.fail(
            "the table does not contain the key streams", "add the key as streams = [...]"
        )
        given = top.get("step") or [{"duration": f"{ALONE_S:g} s"}]
        for name, listed in (("streams", rows), ("step", given)):
            if not isinstance(listed, list):
                self.fail(f"{name} is not a list")
            if len(listed) > ROWS_MAX:
                self.fail(f"{name} has more than {ROWS_MAX:,} entries")
        streams, shares = [], []
        for number, row in enumerate(rows, 1):
            stream, share = self.stream(row, f"stream {number}")
            if stream in streams:
                self.fail(f"stream {number}: {stream.text} is listed twice")
            streams.append(stream)
            shares.append(share)
        steps: list[CaptureStep] = []
        for number, row in enumerate(given, 1):
            begin = steps[-1].begin_s + steps[-1].length_s if steps else 0.0
            steps.append(self.step(row, f"step {number}", begin, streams, shares))
        return IoCapture(
            name=str(top.get("name", self.path.stem)),
            source=str(top.get("source", "typed in")),
            step_s=steps[0].length_s,
            streams=tuple(streams),
            steps=tuple(steps),
        )

    def stream(self, row: Any, where: str) -> tuple[IoStream, float]:
        row = self.checked(row, _STREAM, where)
        for name in _STREAM:
            if name not in row:
                self.fail(f"the key {name} is missing in {where}")
        for name, words in (("access", _ACCESS), ("operation", _OPERATION)):
            if row[name] not in words:
                raise ConfigError.unknown(name, str(row[name]), words, where=self.path)
        size = parse_size(str(row["size"]))
        if size <= 0 or size % 512:
            self.fail(f"{where}: the size {row['size']} is not a multiple of 512 bytes")
        stream = IoStream(row["access"], row["operation"], size)
        return stream, self.share(row["share"], where)

    def step(
        self,
        row: Any,
        where: str,
        begin_s: float,
        streams: Sequence[IoStream],
        shares: Sequence[float],
    ) -> CaptureStep:
        row = self.checked(row, _STEP, where)
        length_s = parse_time(str(row.get("duration", f"{ALONE_S:g} s"))) / 1e9
        if length_s <= 0:
            self.fail(f"{where}: the duration must be greater than 0")
        if "shares" in row:
            if not isinstance(row["shares"], list) or len(row["shares"]) != len(streams):
                self.fail(f"{where} must contain {len(streams)} shares, one for each stream")
            shares = [self.share(share, where) for share in row["shares"]]
        total = sum(shares)
        if total <= 0:
            self.fail(f"{where}: all shares are 0")
        has_rate = "iops" in row
        ios = length_s * self.number(row["iops"], where) if has_rate else 100.0
        count = [ios * share / total for share in shares]
        order = sorted((n for n in range(len(count)) if count[n]), key=lambda n: (-count[n], n))
        depth = row.get("queue_depth")
        return CaptureStep(
            begin_s=begin_s,
            length_s=length_s,
            ios=ios,
            bytes=sum(count[n] * streams[n].size_bytes for n in order),
            reads=sum(count[n] for n in order if streams[n].operation == "read"),
            streams=tuple((n, count[n]) for n in order),
            queue_depth=None if depth is None else self.number(depth, where),
            counted=has_rate,
        )
