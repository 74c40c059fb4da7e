"""Types of the native module that issue I/Os to a real drive; see `_native.pyi`."""

from typing import Any, final

from writecliff._native_traces import TraceReader

@final
class TraceFit:
    """What becomes of a trace on a drive: times, whole sectors, addresses."""

    def __new__(
        cls,
        capacity_bytes: int,
        sector_bytes: int,
        *,
        wrap: bool = False,
        volume: int | None = None,
        speed: float = 1.0,
    ) -> TraceFit:
        """`wrap`: addresses beyond the end begin again, else those I/Os are left out; `volume`: the
        only one that is taken; `speed`: how many times as fast. Raises NativeConfigError.
        """

    def take(self, reader: TraceReader) -> bool:
        """Count the next I/Os of a reader; False at its end."""

    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Count I/Os from columns as `TraceReader.next` gives them."""

    def totals(self) -> dict[str, Any]:
        """What was counted: `ios` and `bytes` (by operation: read, write, trim, flush), `due_ns`
        (of the last), `end_bytes`, `other_volumes`, `outside`, `first_outside` (offset and length),
        `widened`, `too_long`, `moved` (to the time of one before).
        """

@final
class Issuer:
    """Issues I/Os to an open file or device at their times, in a thread of its own."""

    @staticmethod
    def of_trace(
        fd: int,
        fit: TraceFit,
        *,
        is_file: bool,
        in_flight: int,
        seed: int,
        interval_ns: int,
        compressible_pct: float = 0.0,
        records: bool = False,
    ) -> Issuer:
        """A trace, given by `take` or `add` until `end`. `fd`, open for direct I/O, is duplicated;
        `in_flight` is the cap; `records` keeps each I/O for `done`.
        """

    @staticmethod
    def of_workload(
        fd: int, workload: str, *, is_file: bool, capacity_bytes: int, records: bool = False
    ) -> Issuer:
        """A workload (JSON) all of whose jobs have rates. Raises NativeConfigError."""

    def begin(self) -> None:
        """Begin; the first I/O is issued once there is one."""

    def take(self, reader: TraceReader) -> bool:
        """Give the next I/Os of a reader; False at its end, and once no more are taken."""

    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Give I/Os from columns."""

    def end(self) -> None:
        """No more I/Os come."""

    def stop(self) -> None:
        """Issue no more; what is in flight is waited for."""

    def abandon(self) -> None:
        """Do not even wait for what is in flight."""

    def is_done(self) -> bool:
        """Whether `finish` returns at once."""

    def live(self) -> dict[str, int]:
        """So far: `elapsed_ns`, `ios`, `bytes`, `due_ns` (of the latest issued), `in_flight`."""

    def done(self) -> dict[str, Any]:
        """I/Os that are done since the last call, as columns: `intended_ns`, `issue_ns`,
        `complete_ns`, `operation` (read, write, trim, flush), `offset_bytes`, `length_bytes`,
        `result` (bytes, or a negative error number).
        """

    def finish(self) -> dict[str, Any]:
        """Wait for the end; the results: `started_ns` (of the monotonic clock), `elapsed_ns`,
        `jobs` and `intervals` as of `Drive.run`, `lateness` (a histogram), `waited`,
        `left`, `intended_ns` and `length_ns` (up to the last I/O: due, and issued), `failure`
        (operation, offset, length, errno, bytes moved), `failures`, `abandoned`, `in_flight_max`,
        `is_pinned`. Raises OSError: of io_uring.
        """
