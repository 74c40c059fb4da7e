"""ACT output formats: the log, which includes histogram dumps, and the `act_latency.py` table.

ACT tools can read both formats. The log format is that of ACT 6 ("ACT version 6.6") or, for the old
load model, ACT 3.0. The drive is named after the target. Histograms use powers of two of a
millisecond (or microsecond). Bucket 0 covers values below 1, and bucket b covers 2^(b-1) to 2^b.
Histogram counts are cumulative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from writecliff import version
from writecliff.procedures.campaigns.act import CERTIFY, Act
from writecliff.procedures.campaigns.act_config import config_lines
from writecliff.procedures.campaigns.act_judge import Slice, Trial, slices_of
from writecliff.procedures.campaigns.act_load import LARGE_READS, LARGE_WRITES, READS
from writecliff.report.testdata import TestData

VERSIONS = {"6.x": "6.6", "3.x": "3.0"}
BUCKETS = 64
TABLE_MS = (1, 2, 8, 64)
# A fine bucket that contains a limit counts as above the limit, which matches the verdict.
_BUCKETS_SQL = """
select seq, kind, job_name, operation, sum(count)::bigint as ios,
       (case when upper_ns < ? then 0 else floor(log2(upper_ns // ?)) + 1 end)::int as bucket
from histograms
where seq in (select unnest(?::int[]))
group by all
"""


def dump_lines(tag: str, counts: Sequence[int]) -> Iterator[str]:
    """Yield a histogram in ACT's dump format, with four non-empty buckets per line."""
    yield f"{tag} ({sum(counts)} total)"
    cells = [f" ({bucket:02}: {ios:010})" for bucket, ios in enumerate(counts) if ios]
    for begin in range(0, len(cells), 4):
        yield "".join(cells[begin : begin + 4])


@dataclass(frozen=True)
class _Histograms:
    """Named histograms of every step in a test, with counts in ACT's buckets."""

    steps: Sequence[Mapping[str, Sequence[int]]]

    def cumulative(self) -> Iterator[dict[str, list[int]]]:
        total: dict[str, list[int]] = {}
        for step in self.steps:
            for name, counts in step.items():
                before = total.setdefault(name, [0] * BUCKETS)
                total[name] = [a + b for a, b in zip(before, counts, strict=True)]
            yield total


def _histograms(data: TestData, trial: Trial, unit_ns: int) -> _Histograms:
    """Return the stored histograms of a trial's steps, by job, operation and kind."""
    wanted = {
        ("service", READS, "read"): "reads",
        ("response", READS, "read"): "trans-reads",
        ("service", READS, "write"): "writes",
        ("service", LARGE_READS, "read"): "large-block-reads",
        ("service", LARGE_WRITES, "write"): "large-block-writes",
    }
    seqs = [data.seq(row) for row in trial.rows]
    histograms: dict[int, dict[str, list[int]]] = {seq: {} for seq in seqs}
    table = data.run.query(_BUCKETS_SQL, [unit_ns, unit_ns, seqs])
    for row in table.to_pylist():
        name = wanted.get((row["kind"], row["job_name"], row["operation"]))
        if name is not None:
            counts = histograms[row["seq"]].setdefault(name, [0] * BUCKETS)
            counts[row["bucket"]] += row["ios"]
    return _Histograms([histograms[seq] for seq in seqs])


def certified(data: TestData) -> Trial | None:
    """Return a run's last complete test, or None if no test is complete."""
    rows = data.stage_rows(CERTIFY)
    trials = procedure_of(data).trials(rows, CERTIFY) if rows else []
    return trials[-1] if trials else None


def procedure_of(data: TestData) -> Act:
    """Return the test and its options."""
    assert isinstance(data.procedure, Act)
    return data.procedure


def log_text(data: TestData, trial: Trial) -> str:
    """Return a test's log, with the step interval as the report interval."""
    return "\n".join(_log(data, trial)) + "\n"


def _log(data: TestData, trial: Trial) -> Iterator[str]:
    procedure = procedure_of(data)
    options = procedure.options
    old = options.model == "3.x"
    device = data.manifest.device.target
    shown = VERSIONS[options.model]
    yield ""
    yield f"Aerospike act version {shown} - device IO test" if old else f"ACT version {shown}"
    yield f"Storage device IO test, in ACT's format by writecliff {version()}"
    yield ""
    yield "ACT CONFIGURATION" if old else "ACT-STORAGE CONFIGURATION"
    yield from config_lines(options, device)
    yield ""
    yield "DERIVED CONFIGURATION"
    yield from _derived(procedure, trial)
    yield ""
    unit_ns = 1_000 if options.microsecond_histograms else 1_000_000
    dumps = _histograms(data, trial, unit_ns)
    names = [name for name, _ in _tags(dumps.steps[0] if dumps.steps else {}, device, old=old)]
    if not old:
        yield "HISTOGRAM NAMES"
        yield from names
        yield ""
    for number, counts in enumerate(dumps.cumulative(), 1):
        seconds = number * options.report_interval_sec
        yield f"{'After' if old else 'after'} {seconds:g} sec:"
        if old:
            yield "read-reqs queued: 0"
        for tag, name in _tags(counts, device, old=old):
            yield from dump_lines(tag, counts[name])
        yield ""
    if trial.stopped(options.max_lag_sec):
        yield "ERROR: drive(s) can't keep up - test stopped"


def _derived(procedure: Act, trial: Trial) -> Iterator[str]:
    rates = procedure.rates(trial.multiple)
    yield f"record-stored-bytes: {rates.stored_bytes} ... {rates.stored_bytes_max}"
    yield f"internal-read-reqs-per-sec: {rates.reads:g}"
    yield f"internal-write-reqs-per-sec: {rates.writes:g}"
    yield f"large-block-reads-per-sec: {rates.large_reads:.2f}"
    yield f"large-block-writes-per-sec: {rates.large_writes:.2f}"


def _tags(present: Iterable[str], device: str, *, old: bool) -> list[tuple[str, str]]:
    """Return pairs of ACT and writecliff names for the available histograms."""
    measured = set(present)
    if old:
        trans = "trans-reads" if "trans-reads" in measured else "reads"
        order = [
            ("LARGE BLOCK READS ", "large-block-reads"),
            ("LARGE BLOCK WRITES", "large-block-writes"),
            ("RAW READS         ", "reads"),
            (f"{device:<18}", "reads"),
            ("READS             ", trans),
        ]
    else:
        order = [
            ("reads", "reads"),
            (f"{device}-reads", "reads"),
            ("large-block-reads", "large-block-reads"),
            ("large-block-writes", "large-block-writes"),
            ("writes", "writes"),
            (f"{device}-writes", "writes"),
        ]
    return [(tag, name) for tag, name in order if name in measured]


def table_text(slices: Sequence[Slice], *, old: bool, every: Sequence[int] = TABLE_MS) -> str:
    """Return the `act_latency.py` table of reads above each threshold, by slice."""
    head = "".join(f"{ms:7}" for ms in every)
    rule = "-----  " + " ------" * len(every)
    lines = [f"        {'trans' if old else 'reads'}", "        %>(ms)", f"slice  {head}", rule]
    lines += [_line(str(item.number), [item.over_pct[ms] for ms in every]) for item in slices]
    lines.append(rule)
    columns = [[item.over_pct[ms] for item in slices] for ms in every]
    lines.append(_line("avg", [sum(values) / len(values) for values in columns]))
    lines.append(_line("max", [max(values) for values in columns]))
    return "\n".join(lines) + "\n"


def _line(name: str, values: Sequence[float]) -> str:
    return f"{name:>5}  " + "".join(f"{value:7.2f}" for value in values)


def slices(data: TestData, trial: Trial) -> list[Slice]:
    """Return a test's complete slices."""
    procedure = procedure_of(data)
    return slices_of(trial.rows, min(procedure.steps_a_slice, trial.steps_wanted))
