"""Options for targets, runs, sets of runs and traces, which several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter, Token

from writecliff.api import new_path as new_path  # noqa: PLC0414 - commands take it from here
from writecliff.cli.output import ADVANCED, DRIVE, OUTPUT
from writecliff.errors import ConfigError
from writecliff.output_files import check_output
from writecliff.units import parse_size

if TYPE_CHECKING:
    from writecliff.engines.base import Engine
    from writecliff.replay.model import Sizing


def _whole(_type: Any, tokens: Sequence[Token]) -> int:
    """Parse a whole number, because cyclopts would round 2.7 threads to 3."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError("the option requires a whole number")
    return int(text)


def _no_device(_type: Any, path: Path | None) -> None:
    """Reject a device as an output path before the run starts. Raises ConfigError."""
    if path is not None:
        check_output(path)


MadePath = Annotated[Path, Parameter(validator=_no_device)]
"""The annotation of a required output file or folder."""
OutputPath = Annotated[Path | None, Parameter(validator=_no_device, group=OUTPUT)]
"""The annotation of an optional output file or folder."""
Whole = Annotated[int | None, Parameter(converter=_whole)]
"""The annotation of an optional whole number."""
ListFlag = Annotated[bool, Parameter(name="--list")]
"""The annotation of `list_`, which lists the names that a command accepts."""
Settings = Annotated[tuple[str, ...], Parameter(name="--set")]
"""The annotation of `set_`, options of tests as text."""


Scheduler = str | None
"""The annotation of `scheduler`, the cluster that executes runs instead of this machine."""


@contextmanager
def on_scheduler(address: Scheduler, *, workers: int | None = None) -> Iterator[None]:
    """Run the independent simulations in the block on Dask.

    Args:
        address: "local", or the address of a scheduler; None disables Dask.
        workers: Number of local workers.

    Raises:
        ConfigError: If the scheduler cannot be reached, or Dask is not installed.
    """
    if address is None:
        yield
        return
    from writecliff.cluster import connected
    from writecliff.parallel import placed

    with connected(address, workers=workers) as cluster, placed(cluster):
        yield


def check_jobs(jobs: int | None) -> None:
    """Check the number of simultaneous runs before anything is written.

    Raises:
        ConfigError: If the number is less than 1.
    """
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, not {jobs}")


def check_scheduler(address: Scheduler, targets: Sequence[str | None]) -> None:
    """Check that a scheduler can run the targets before anything is written.

    Raises:
        ConfigError: If a target is not simulated, because real targets are attached to this
            machine.
    """
    from writecliff.engines.target import is_simulated

    for target in targets:
        if address is not None and target is not None and not is_simulated(target):
            raise ConfigError(
                f"{target} is attached to this machine, so its tests cannot be sent to a scheduler",
                hint="omit --scheduler",
            )


def test_names(text: str | None) -> list[str] | None:
    """Return the tests in a list, or None for all tests. Raises ConfigError if it is empty."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError("--tests is empty", hint="specify the tests, for example iops,tp,lat")
    return names


_DESCRIBED = ("nand_type", "form_factor", "sponsor", "note")


_Advanced = Annotated[str | None, Parameter(group=ADVANCED)]


@Parameter(name="*", group=DRIVE)
@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Options that select the target: the drive, and the permission to destroy its data."""

    on: Annotated[str | None, Parameter(name="--on")] = None
    """Target drive: sim:NAME, sim:PATH.toml, file:PATH or /dev/NAME."""

    destroy: str | None = None
    """Serial number of a /dev/ target, which confirms that the drive's data may be destroyed."""

    wipe_signatures: bool = False
    """Allow the test to overwrite partition tables and file systems on a /dev/ target."""

    power_state: int | None = None
    """Power state of an NVMe drive, or of a simulated drive that has power states, during the test.
    After the test, a real drive returns to its previous power state."""

    size: str | None = None
    """Size of the test file to create for a file: target, such as 10GB or 8GiB."""

    nand_type: _Advanced = None
    """Flash type of a real drive, to show in the report header. Drives do not report their flash
    type."""

    form_factor: _Advanced = None
    """Form factor of a real drive, to show in the report header."""

    sponsor: _Advanced = None
    """Test sponsor to show in the report header."""

    note: _Advanced = None
    """Remark to show in the report header."""

    attribute_latency: Annotated[bool, Parameter(group=ADVANCED)] = False
    """Record the causes of I/O latency at each percentile (simulated SSDs only). Recording slows
    down the simulation."""

    def checked(self) -> str:
        """Return the target.

        Raises:
            ConfigError: If no target is given, or if an option has no effect on the target.
        """
        target = target_of(self.on)
        _check_options_fit(self, target)
        return target

    def opening(self) -> dict[str, Any]:
        """Return the keyword arguments of `open_target`."""
        return {
            "destroy_serial": self.destroy,
            "allow_signatures": self.wipe_signatures,
            "power_state": self.power_state,
            "size_bytes": None if self.size is None else parse_size(self.size),
            "attribute_latency": self.attribute_latency,
            "described": {
                name: text for name in _DESCRIBED if (text := getattr(self, name)) is not None
            },
        }


def target_of(on: str | None) -> str:
    """Return the target given by --on. Raises ConfigError if no target is given."""
    if on is None:
        raise ConfigError(
            "no target was specified", hint="add --on, for example --on sim:sata-tlc-120"
        )
    return on


def _check_options_fit(options: TargetOptions, target: str) -> None:
    """Reject options that have no effect on this kind of target."""
    for option, given, kinds in (
        ("--size", options.size is not None, ("file:",)),
        ("--destroy", options.destroy is not None, ("/dev/",)),
        ("--wipe-signatures", options.wipe_signatures, ("/dev/",)),
        ("--power-state", options.power_state is not None, ("/dev/", "sim:")),
        ("--attribute-latency", options.attribute_latency, ("sim:",)),
    ):
        if given and not target.startswith(kinds):
            hint = f"the option applies only to {' and '.join(kinds)}"
            raise ConfigError(f"{option} does not apply to {target}", hint=hint)
    for option, text in (
        ("--nand-type", options.nand_type),
        ("--form-factor", options.form_factor),
    ):
        if text is not None and target.startswith("sim:"):
            hint = "a simulated drive's device file contains this setting"
            raise ConfigError(f"{option} does not apply to {target}", hint=hint)


def opened(
    options: TargetOptions, *, seed: int, look_only: bool = False
) -> AbstractContextManager[Engine]:
    """Return a context manager that yields the target's engine and closes it on exit.

    Args:
        options: The target.
        seed: Random seed for the drive.
        look_only: True to not claim a real drive exclusively.

    Raises:
        TargetError: If the drive cannot be opened.
        ConfigError: If no target is given, or an option has no effect on the target.
    """
    from writecliff.api.runs import opened as opened_target

    return opened_target(options.checked(), seed, look_only=look_only, **options.opening())


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class OutcomeOptions:
    """Options for a new run's limits, baseline and store."""

    baseline: Path | None = None
    """Baseline run, suite or saved JSON output to compare the run with. The command prints the
    verdict. The exit code is 3 if a figure is significantly worse than in the baseline."""

    expect: tuple[str, ...] = ()
    """Limit on a headline figure, such as "iops >= 100000"; may be repeated. In suites and sweeps,
    a limit applies to every run that reports the figure; "TEST.iops >= 100000" applies only to runs
    of TEST. The exit code is 3 if a limit is not met."""

    junit: OutputPath = None
    """Write the results of --expect and --baseline to this file as JUnit XML."""

    store: str | None = None
    """Run store for new runs (default: the store in WRITECLIFF_STORE, else the current folder)."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class RunOptions(OutcomeOptions):
    """Options for a run's directory, for resuming a run, and for only planning a run."""

    output: OutputPath = None
    """Run directory, which must be empty or not exist (default: runs/NAME-TARGET-TIME)."""

    resume: Path | None = None
    """Resume the unfinished run in this directory with the run's original options."""

    dry_run: bool = False
    """Show the plan and its write volume, but do not access the drive. The exit code is 2 if the
    command would be rejected."""

    quiet: bool = False
    """Suppress progress output on stderr."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class SetOptions(OutcomeOptions):
    """Options for the directory and the execution of a suite or sweep."""

    output: OutputPath = None
    """Parent directory of the runs, which must be empty or not exist (default:
    suites/EDITION-TARGET-TIME or sweeps/OPTION-TARGET-TIME)."""

    resume: Path | None = None
    """Resume the unfinished runs in this directory with the runs' original options."""

    jobs: Whole = None
    """Number of simultaneous runs on a simulated drive (default: one per core, as memory
    allows)."""

    scheduler: Scheduler = None
    """Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT)."""

    quiet: bool = False
    """Suppress progress output on stderr."""


@Parameter(name="*", group=Group("Replay", sort_key=1.5))
@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Options for the drive, drive size and length of a trace replay."""

    on: Annotated[str | None, Parameter(name="--on", group=DRIVE)] = None
    """Simulated drive: sim:NAME or sim:PATH.toml."""

    rules: Annotated[str | None, Parameter(name="--streams")] = None
    """Rules that assign writes to streams: a rules file, or the name of a preset."""

    fill: float = 85.0
    """Scale the drive down until the files fill this percentage of the drive at peak."""

    whole_drive: bool = False
    """Use the drive at full size, even if the trace leaves the drive almost empty."""

    units: Whole = None
    """Number of reclaim units on the scaled-down drive (default: the number that preserves the
    reclaim unit size)."""

    fills: float | None = None
    """Repeat the trace until it has written the drive's capacity this many times; the second half
    is measured (default: 6, or more on a small drive)."""

    repeat: Whole = None
    """Number of times to repeat the trace, instead of repeating it for a number of drive fills."""

    writeback: str = "by-trace"
    """Time at which writes reach the drive: page-cache (at fsync, after 30 s, or when 1 GiB waits,
    as in Linux; direct and synchronous writes immediately), immediate (all writes immediately), or
    by-trace (immediate for the trace of a served drive, else page-cache)."""

    writes_per_day: str | None = None
    """Volume of data written per day, such as 500GB, for the drive's lifetime estimate (default:
    the trace's write rate)."""

    allocator: str = "next-fit"
    """Space allocation policy of the file system: next-fit, first-fit or folders."""

    trim: Annotated[bool, Parameter(negative="--no-trim")] = True
    """Trim space that the file system frees; otherwise the drive retains the freed data until it is
    overwritten."""

    copies: int = 1
    """Number of copies of the traced program that run concurrently, offset in time."""

    seed: int = 1
    """Seed for all random choices."""

    timed: Annotated[bool, Parameter(negative="--no-timed")] = True
    """Also replay the end of the trace in simulated time, with concurrent reads of live data, to
    measure latencies."""

    queue_depth: int = 32
    """Number of outstanding writes during the timed replay."""

    readers: int = 4
    """Number of outstanding random 4 KiB reads of live data during the timed replay."""

    @property
    def target(self) -> str:
        """The target given by --on. Raises ConfigError if no target is given."""
        return target_of(self.on)

    def sizing(self) -> Sizing:
        """Return the drive and trace sizing."""
        from writecliff.replay.model import Sizing

        return Sizing(
            fill_pct=None if self.whole_drive else self.fill,
            units=self.units,
            fills=self.fills,
            repeats=self.repeat,
            writeback=self.writeback,
            allocator=self.allocator,
            trim=self.trim,
            copies=self.copies,
        )

    def given(self) -> dict[str, Any]:
        """Return the keyword arguments of `api.replay_trace` and `api.advise_streams`."""
        per_day = self.writes_per_day
        return {
            "rules": self.rules,
            "sizing": self.sizing(),
            "writes_per_day_bytes": None if per_day is None else parse_size(per_day),
            "timed": self.timed,
            "queue_depth": self.queue_depth,
            "readers": self.readers,
            "seed": self.seed,
        }


NO_TARGET, NEW_RUN, NEW_SET, NEW_OUTCOME, NO_TRACE_OPTIONS = (
    TargetOptions(), RunOptions(), SetOptions(), OutcomeOptions(), TraceOptions(),
)  # fmt: skip
