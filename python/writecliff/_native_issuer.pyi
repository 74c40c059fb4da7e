"""Types of the native module that issue I/Os to a real drive; see `_native.pyi`."""

from typing import Any, final

from writecliff._native_traces import TraceReader

@final
class TraceFit:
    """Conversion of a trace for a drive: times, whole sectors, addresses."""

    def __new__(
        cls,
        capacity_bytes: int,
        sector_bytes: int,
        *,
        wrap: bool = False,
        volume: int | None = None,
        speed: float = 1.0,
    ) -> TraceFit:
        """Set the conversion.

        With `wrap`, addresses beyond the end wrap around; otherwise these I/Os are omitted.
        `volume` selects a volume, `speed` divides times. Raises NativeConfigError.
        """

    def take(self, reader: TraceReader) -> bool:
        """Count the next I/Os of a reader; return False at its end."""

    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Count I/Os in columns of `TraceReader.next`."""

    def totals(self) -> dict[str, Any]:
        """Return the counts.

        `ios` and `bytes` (by operation: read, write, trim, flush), `due_ns` (of the last I/O),
        `end_bytes`, `other_volumes`, `outside`, `first_outside` (offset and length), `widened`,
        `too_long`, `moved` (to the time of a previous I/O).
        """

@final
class Issuer:
    """Thread that issues I/Os to an open file or device at their intended times."""

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
        """Create an issuer for a trace, which `take` or `add` pass until `end`.

        `fd`, open for direct I/O, is duplicated; `in_flight` limits outstanding I/Os; `records`
        stores each I/O for `done`.
        """

    @staticmethod
    def of_workload(
        fd: int, workload: str, *, is_file: bool, capacity_bytes: int, records: bool = False
    ) -> Issuer:
        """Create an issuer for a workload (JSON) whose jobs all have rates.

        Raises NativeConfigError.
        """

    def begin(self) -> None:
        """Start issuing, with the first I/O that arrives."""

    def take(self, reader: TraceReader) -> bool:
        """Pass the next I/Os of a reader; return False at its end, or if no more are accepted."""

    def add(self, columns: dict[str, Any], volumes: list[str], processes: list[str]) -> None:
        """Pass I/Os in columns."""

    def end(self) -> None:
        """Mark the end of the trace."""

    def stop(self) -> None:
        """Stop issuing, and wait for the I/Os in flight."""

    def abandon(self) -> None:
        """Stop without waiting for the I/Os in flight."""

    def is_done(self) -> bool:
        """Return True if `finish` returns at once."""

    def live(self) -> dict[str, int]:
        """Return `elapsed_ns`, `ios`, `bytes`, `due_ns` of the latest issued I/O, `in_flight`."""

    def done(self) -> dict[str, Any]:
        """Return the I/Os that completed since the last call, as columns.

        `intended_ns`, `issue_ns`, `complete_ns`, `operation` (read, write, trim, flush),
        `offset_bytes`, `length_bytes`, `result` (bytes, or a negative error number).
        """

    def finish(self) -> dict[str, Any]:
        """Wait for the end, and return the results.

        `started_ns` (of the monotonic clock), `elapsed_ns`, `jobs` and `intervals` as in
        `Drive.run`, `lateness` (a histogram), `waited`, `left`, `intended_ns` and `length_ns`
        (until the last I/O was due and was issued), `failure` (operation, offset, length, errno,
        bytes moved), `failures`, `abandoned`, `in_flight_max`, `is_pinned`. Raises OSError if
        io_uring fails.
        """
