"""What `writecliff trace synthesise` makes of a trace, and how near it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import _native
from writecliff.errors import encoded
from writecliff.native_errors import as_user_errors
from writecliff.progress import UNSEEN, WorkProgress
from writecliff.store.files import write_atomically
from writecliff.synthesis import fio_job
from writecliff.synthesis.compare import Row, compared
from writecliff.synthesis.fit import fit
from writecliff.synthesis.laid_out import lay_out
from writecliff.synthesis.workload_file import workload_text
from writecliff.traces.source import Skipped, skipped_mapping
from writecliff.workload.model import Job, Workload

if TYPE_CHECKING:
    from writecliff.synthesis.played import Played
    from writecliff.traces.source import Source
    from writecliff.workload.io_model import IoModel

QUEUE_DEPTH = 4096  # of the job: an open loop
WORKLOAD_FILE, FIO_FILE = "workload.toml", "workload.fio"
Measures = Mapping[str, Any]


@dataclass(frozen=True)
class Synthesised:
    """A workload made after a trace."""

    trace: Path
    formats: tuple[str, ...]
    model: IoModel
    measures: Measures  # of the trace, its volumes in one range
    synthetic: Measures  # of a pass of the workload
    fio_job: str  # the text of the job file
    span_bytes: int  # of the trace's addresses, over all volumes
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    played: Played | None = None  # on a simulated drive

    @property
    def job(self) -> Job:
        """The job of the workload file: one pass."""
        counted = self.model.ios - self.model.flushes
        return Job(name="synthetic", model=self.model, ios=counted, queue_depth=QUEUE_DEPTH)

    @property
    def rows(self) -> list[Row]:
        """The measures side by side."""
        return compared(self.measures, self.synthetic)

    @property
    def missed(self) -> list[Row]:
        """Those that do not keep their bound."""
        return [row for row in self.rows if row.within is False]

    def workload_text(self) -> str:
        """The workload file, in TOML."""
        return workload_text(self.model, self.trace.name, queue_depth=QUEUE_DEPTH)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the workload file and the fio job file; a file that is there is replaced."""
        folder.mkdir(parents=True, exist_ok=True)
        workload, job = folder / WORKLOAD_FILE, folder / FIO_FILE
        write_atomically(workload, encoded(self.workload_text()))
        write_atomically(job, encoded(self.fio_job))
        return workload, job

    def mapping(self) -> dict[str, Any]:
        """All of it, as `writecliff trace synthesise --json` prints it."""
        model = self.model
        return {
            "trace": self.trace,
            "format": ", ".join(self.formats),
            "ios": model.ios,
            "duration_s": self.measures["duration_s"],
            "model": {
                "numbers": model.numbers,
                "streams": len(model.streams.lengths),
                "states": len(model.states.stream),
                "transitions": len(model.transitions.count),
                "phases": len(set(model.periods.phase)),
                "periods": len(model.periods.ios),
                "sweeps": len(model.sweeps.begin) if model.sweeps else 0,
                "intervals": len(model.demand.ios) if model.demand else 0,
                "places": len(model.places.count),
                "range_bytes": model.range_bytes,
                "span_bytes": self.span_bytes,
                "seed": model.seed,
            },
            "measures": [row.mapping() for row in self.rows],
            "missed": [row.name for row in self.missed],
            "played": None if self.played is None else self.played.mapping(),
            "fio_notes": list(fio_job.NOTES),
            "notes": list(self.notes),
            **skipped_mapping(self.skipped),
        }


def synthesise(
    source: Source,
    trace: Path,
    *,
    on: str | None = None,
    seed: int = 1,
    progress: WorkProgress = UNSEEN,
    on_part: Callable[[str], None] = lambda text: None,
) -> Synthesised:
    """Make a workload after a trace and measure it; `on`: play both on this simulated drive.
    `on_part` gets what is being done. Raises ConfigError."""
    found = lay_out(source, progress=progress)
    on_part("fitting the model")
    model = fit(found, seed=seed)
    job = Job(model=model, ios=1)
    with as_user_errors():
        synthetic = _native.model_ios(Workload("synthetic", (job,)).to_json())
    measures = _measured(found.columns())
    result = Synthesised(
        trace=trace,
        formats=tuple(source.formats),
        model=model,
        measures=measures,
        synthetic=_measured(synthetic),
        fio_job=fio_job.fio_job_text(measures, trace.name, model.range_bytes),
        span_bytes=found.span_bytes,
        skipped=tuple(source.skipped()),
        notes=(*source.notes(), *found.notes),
    )
    if on is None:
        return result
    from writecliff.synthesis.played import play

    played = play(found, result.job, on, fio_job=result.fio_job, seed=seed, on_part=on_part)
    return replace(result, played=played)


def _measured(columns: dict[str, Any]) -> Measures:
    measures = _native.TraceMeasures()
    with as_user_errors():
        measures.add(columns, ["all volumes"], [""])
    found: Measures = json.loads(measures.result())
    return found
