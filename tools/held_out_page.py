"""Section "Current drives" of the validation page, generated from the stored predictions.

To replace the section in the page, run:

    .venv/bin/python tools/held_out_page.py docs/validation.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, log10
from pathlib import Path
from statistics import fmean, median
from textwrap import fill

from writecliff.devices import SCM_FAMILIES
from writecliff.published.held_out import (
    BURSTS,
    CACHE_SIZE,
    CONSTANT,
    FACTOR,
    FEWEST,
    FILLS,
    FULL_RATE,
    FULL_RATE_SHARE,
    KNEE,
    LIGHT,
    MIXES,
    PART,
    RELATIVE,
    REPEATED,
    SEEN,
    SKEWED,
    STATIC,
    UNIFORM,
    WRITE_AMPLIFICATION,
    ZONES,
    HeldOut,
    KindScore,
    Winners,
    by_kind,
    current_drives,
    endurance,
    left_out_capacities,
    mean_kind,
    measured,
    modern_rows,
    score_of,
    ssd_iq,
    tail_kind,
    winners,
)
from writecliff.published.modern import split
from writecliff.published.predictions import (
    SSD_IQ_PREDICTIONS,
    SsdIqPrediction,
    read_ssd_iq_predictions,
)
from writecliff.published.scores import PairwiseComparison, comparisons_of
from writecliff.published.ssd_iq.conditions import OpenLoop

TITLE = "## Current drives\n"
_COLUMNS = 125
_RATES = ("random reads", "random writes", "sequential reads", "sequential writes", BURSTS, FILLS)
_MEANS = tuple(map(mean_kind, ("random reads", "random writes")))
_LOADS = (
    UNIFORM, SKEWED, f"{SKEWED}{RELATIVE}", STATIC, f"{STATIC}{RELATIVE}", PART, ZONES,
    KNEE, WRITE_AMPLIFICATION,
)  # fmt: skip
_TAILS = ("p50", "p99", "p99.9", "p99.99", "p99.999")
_WHOSE = ("reads beside writes", "writes")
# Published percentage of I/Os within 10 % of their latency: source, subject, percentage.
_OTHERS = (
    ("Das Sharma, Ji, Jeong, Kim, IEEE CAL 24(2), 2025", "https://doi.org/10.1109/LCA.2025.3581580",
     "existing simulators and models; individual I/Os", "6 to 37 %"),
    ("Das Sharma et al., 2025", "", "their model, trained on a trace of the drive; individual I/Os",
     "85 to 95 %"),
)  # fmt: skip


def section() -> str:
    """Return the section as Markdown."""
    parts = (TITLE, _intro(), _headline(), _sheets(), _measured(), _capacities(), _skew(),
             _tails(), _endurance(), _winners(), _within())  # fmt: skip
    return "\n".join(parts)


def _intro() -> str:
    return _prose(
        "A rule derives half of the catalogue from data sheets. `tools/held_out_page.py` "
        "generates this section from stored predictions of held-out figures from [data sheets and "
        "reviews](reference/current-drives.md) (`reproduce "
        "modern --short`), and of measurements of four drives under skewed, static and open-loop "
        "loads ([SSD-iq](guides/catalogue.md#skewed-and-static-data-ssd-iq), `reproduce ssd-iq`). "
        "`choose` takes its errors from the same predictions, by kind of load. If a kind has "
        f"fewer than {FEWEST} figures, its error counts as not known.",
        "*In view* marks figures that the author of the rule had seen before setting a constant. "
        "The error of these figures is a lower bound for other drives. By construction, the rule "
        "matches the figures from which it derives a drive, so the errors of these figures are "
        "not listed. The rule was "
        "revised twice after errors of held-out figures had been seen "
        "([method](guides/catalogue.md#current-drives)).",
    )


def _headline() -> str:
    """Return the median errors of groups of held-out rates, and of all rates."""
    rates = [figure for figure in current_drives() if figure.kind in (*_RATES, MIXES)]
    storage_class = [figure for figure in rates if figure.family in SCM_FAMILIES]
    flash = [figure for figure in rates if figure.family not in SCM_FAMILIES]
    groups = {
        f"pure loads on flash{_WITHOUT}": [f for f in flash if f.kind != MIXES and not f.exclusion],
        "rates that repeat a figure of the same family": [f for f in flash if f.exclusion],
        "mixes (in view)": [f for f in flash if f.kind == MIXES],
        "storage-class memory": storage_class,
        "all": rates,
    }
    rows = [
        (name, str(len(group)), f"{median(figure.error for figure in group):.1f} %")
        for name, group in groups.items()
        if group
    ]
    return (
        "### Composition of the error of all rates\n\n"
        + _prose("A single median would hide the differences between kinds of loads.")
        + "\n"
        + _table(("held-out rates", "figures", "median error"), rows)
    )


_WITHOUT = ", without repetitions"


def _sheets() -> str:
    figures = by_kind(f for f in current_drives() if f.family not in SCM_FAMILIES)
    rows = []
    for kind in (*_RATES, MIXES, *_MEANS, CACHE_SIZE):
        of_kind = figures.get(kind, [])
        counted = [figure for figure in of_kind if not figure.exclusion]
        if counted:
            name = f"{kind}{_in_view(counted)}"
            rows.append((name, *_cells(score_of(counted)), _exclusions(of_kind)))
    header = ("kind of load", *_HEAD, "not counted")
    return (
        "### Data sheets and reviews: held-out figures\n\n"
        + _table(header, rows)
        + "\n"
        + _prose(
            "A repetition has the value of a figure of the same family that the rule uses. A "
            "constant is a latency that the rule predicts equally for drives of several families, "
            "so it does not test any property of a drive. An error that led to a change of the "
            "rule counts as seen."
        )
    )


_HEAD = ("figures", "median", "90th percentile", "largest", "within 10 %")


def _exclusions(figures: Sequence[HeldOut]) -> str:
    """Return the number of figures that do not count, by reason."""
    counts = {
        word: sum(figure.exclusion == reason for figure in figures)
        for reason, word in ((REPEATED, "repetition"), (CONSTANT, "constant"), (SEEN, "seen"))
    }
    return ", ".join(
        f"{count} {word}{'' if count == 1 or word == 'seen' else 's'}"
        for word, count in counts.items()
        if count
    )


def _in_view(figures: Iterable[HeldOut]) -> str:
    return " (in view)" if any(figure.in_view for figure in figures) else ""


def _cells(score: KindScore | None) -> tuple[str, ...]:
    if score is None:
        return ("0", *[""] * (len(_HEAD) - 1))
    values = (score.median, score.p90, score.largest)
    texts = (f"{value:.1f} %" if score.unit == "%" else f"{value:.3g} x" for value in values)
    return (str(score.figures), *texts, f"{score.within_pct:.0f} %")


def _measured() -> str:
    figures = by_kind(f for f in measured() if f.family not in SCM_FAMILIES)
    rows = []
    for kind, of_kind in sorted(figures.items()):
        counted = [figure for figure in of_kind if not figure.exclusion]
        if counted:
            name = f"{kind.removesuffix(_ALWAYS)}{_in_view(counted)}"
            rows.append((name, *_cells(score_of(counted)), _exclusions(of_kind)))
    return (
        "### Later measurements and data sheets\n\n"
        + _prose(
            "These figures describe drives of the catalogue, and [other "
            "capacities](guides/catalogue.md#other-capacities) of their families. They were "
            "collected after the split, and no rule uses them (`lab reproduce measured --short`). "
            "Rates of one thread with 32 or more outstanding commands are omitted, because the "
            "host limits them. Writes of 16 and 64 KiB after sequential fills are assumed to have "
            "been measured before garbage collection starts. This assumption was made after the "
            "comparison, because the simulated steady state is several times slower. One source's "
            "latencies for 990 PRO include host time. Data sheets state power as a limit. Errors "
            "of percentiles are factors; other errors are percentages.",
            "Two sources disagree on the SLC cache of the 2 TB P44 Pro: 760 GB (Guru3D, which the "
            "rule uses) and 289 GB (TechPowerUp). 760 GB is more than a third of the drive, so "
            "the simulated cache is one third, 667 GB.",
        )
        + "\n"
        + _table(("kind of load", *_HEAD[:-1], "within 10 %, or 1.5 x", "not counted"), rows)
    )


_ALWAYS = f", {FULL_RATE}"  # The loads in these sources have no rate.


def _capacities() -> str:
    figures = by_kind(left_out_capacities())
    rows = [
        (f"{kind}{_in_view(figures[kind])}", *_cells(score_of(figures[kind])))
        for kind in (*_RATES, MIXES)
        if kind in figures
    ]
    drives = {figure.drive for figure in left_out_capacities()}
    return (
        "### Other capacities of a family\n\n"
        + _prose(
            f"Each of {len(drives)} listed drives is derived only from the other capacities of "
            f"its model, by the [rule](guides/catalogue.md#other-capacities) that derives drives "
            "on request, and simulated (`python -m writecliff.lab.published.left_out`). The rule "
            "was chosen with some of these figures in view. Most models have two capacities, so "
            "most drives are extrapolated from a single other capacity. Errors between two "
            "capacities are smaller."
        )
        + "\n"
        + _table(("kind of load", *_HEAD), rows)
    )


def _skew() -> str:
    figures = by_kind(ssd_iq())
    drives = ", ".join(dict.fromkeys(figure.drive for figure in ssd_iq()))
    rows = [(kind, *_cells(score_of(figures[kind]))) for kind in _LOADS if kind in figures]
    return (
        "### Skewed and static data, zones: SSD-iq\n\n"
        + _prose(
            f"The drives are {drives}, each derived by rule from its data sheet. Several figures "
            f"of a kind for the same drive and load count once, as their median. The data sheet "
            f"states the rate of uniform writes, so this row shows how well the rule reproduces "
            f"that rate. "
            "No constant was set from the other rows, but garbage-collection policies were "
            "compared with the rates relative to uniform writes. The averaging window was placed "
            "after a two-zone figure of 7450 MAX had been seen."
        )
        + "\n"
        + _table(("kind of load", *_HEAD), rows)
    )


def _tails() -> str:
    figures = by_kind(ssd_iq())
    rows = []
    for whose in _WHOSE:
        for full_rate in (False, True):
            for statistic in _TAILS:
                latencies = figures.get(tail_kind(statistic, whose, full_rate=full_rate))
                if latencies:
                    where = FULL_RATE if full_rate else LIGHT
                    rows.append((f"{statistic} of {whose}", where, *_cells(score_of(latencies))))
    header = ("percentile", "open loop", *_HEAD[:-1], f"within {FACTOR:g} x")
    return (
        "### Tails (in view)\n\n"
        + _prose(
            "Errors are factors between published and simulated service times of SSD-iq's probe, "
            'which runs alongside Poisson arrivals of writes. "Below full rate" means less than '
            f"{100 * FULL_RATE_SHARE:.0f} % of the drive's largest rate. The class defaults for "
            f"tails were set with some of these latencies in view. The table of later figures "
            f"lists the tails of reads alone. Simulated maxima are not reliable, so the table "
            f"omits them."
        )
        + "\n"
        + _table(header, rows)
    )


def _endurance() -> str:
    figures = [figure for figure in ssd_iq() if figure.kind == WRITE_AMPLIFICATION]
    drives = ", ".join(dict.fromkeys(figure.drive for figure in figures))
    score = score_of(figures)
    error = ""
    if score is not None:
        error = f": the median error is {score.median:.1f} % ({score.figures} figures)"
    rows = [
        (
            figure.drive,
            f"{figure.published / 1e12:,.0f} TB",
            f"{figure.simulated / 1e12:,.0f} TB",
            f"{100 * (figure.simulated / figure.published - 1):+.0f} %",
        )
        for figure in endurance()
    ]
    rated = score_of(endurance())
    ratings = ""
    if rated is not None:
        ratings = (
            f" The median error of {rated.figures} ratings is {rated.median:.1f} %, the largest "
            f"{rated.largest:.1f} %."
        )
    return (
        "### Endurance\n\n"
        + _prose(
            f"The write amplification that {drives or 'no drive'} reports is compared with "
            f"the simulation{error}.",
            "The rated writes (TBW) of TLC data-centre drives are predicted from the flash's "
            "cycles and the drive's own write amplification under random writes. The rated writes "
            "of the other families determine the cycles, so each drive is predicted without its "
            f"own rating. The approach was chosen with all ratings in view.{ratings} The rating of "
            "a client drive does not refer to random writes, so its device file assumes a write "
            "amplification of 1.5, and the error of a life limited by cycles is unknown.",
        )
        + "\n"
        + _table(("drive", "rated", "predicted", "error"), rows)
    )


# -- winners ---------------------------------------------------------------------------------------


def _winners() -> str:
    of_kind = by_kind(ssd_iq())
    compared = comparisons_of(modern_rows())
    rows = [
        ("pure loads, data sheets", *_right(pair for pair in compared if not pair.mixed)),
        ("pure loads, data sheets, a figure of the pair held out",
         *_right(pair for pair in _held_out_comparisons() if not pair.mixed)),
        ("mixes, data sheets (in view)", *_right(pair for pair in compared if pair.mixed)),
    ]  # fmt: skip
    for name, kinds in _WINNER_KINDS.items():
        figures = [figure for kind in kinds for figure in of_kind.get(kind, ())]
        rows.append((name, *_won(winners(figures)), *_won(winners(figures, most=CLOSE))))
    return (
        "### The better of two drives\n\n"
        + _prose(
            "A pair is two drives under the same load in one source, with published figures that "
            "differ by more than 5 %. Data sheets give figures almost only for pure loads, and "
            "the rule uses most of these figures."
        )
        + "\n"
        + _table(("load", *_WON, *(f"{word}, {_NEAR}" for word in _WON)), rows)
    )


CLOSE = 2.0  # Maximum factor between two published figures that count as close.
_WON, _NEAR = ("pairs", "correct winner"), f"within {CLOSE:g} x"
_WINNER_KINDS = {
    "skewed writes, SSD-iq": (SKEWED,),
    "partly static data, SSD-iq": (STATIC,),
    "zones written in order, SSD-iq": (ZONES,),
    "largest rate of an open loop, SSD-iq": (KNEE,),
    **{
        f"p99 to p99.99 of {whose}, {LIGHT}, SSD-iq (in view)": tuple(
            tail_kind(statistic, whose, full_rate=False) for statistic in _TAILS[1:4]
        )
        for whose in _WHOSE
    },
}


def _held_out_comparisons() -> Iterator[PairwiseComparison]:
    """Yield the comparisons with a held-out figure."""
    parts = split()
    fitted = {(f.device, f.metric, f.label, f.value) for f, part in parts.items() if part == "fit"}
    for pair in comparisons_of(modern_rows()):
        drives = zip(pair.drives, pair.published, strict=True)
        if any((drive, pair.metric, pair.label, value) not in fitted for drive, value in drives):
            yield pair


def _right(compared: Iterable[PairwiseComparison]) -> tuple[str, ...]:
    """Return the cells of the clear pairs, and of the pairs whose figures are close."""
    clear = [pair for pair in compared if pair.clear]
    close = [pair for pair in clear if max(pair.published) <= CLOSE * min(pair.published)]
    counts = (Winners(len(pairs), sum(pair.right for pair in pairs)) for pairs in (clear, close))
    return tuple(cell for count in counts for cell in _won(count))


def _won(count: Winners) -> tuple[str, str]:
    share = f" ({100 * count.right / count.pairs:.0f} %)" if count.pairs else ""
    return str(count.pairs), f"{count.right}{share}"


# -- share within 10 % -----------------------------------------------------------------------------


def _within() -> str:
    compared = distributions(read_ssd_iq_predictions(SSD_IQ_PREDICTIONS))
    header = ("source", "subject", f"fraction within {100 * TOLERANCE:.0f} %")
    rows = [
        ("writecliff, SSD-iq (in view)", f"{subject}; distributions", _spread(loops))
        for subject, loops in _by_operation(compared)
    ]
    rows += [
        (f"[{source}]({address})" if address else source, subject, share)
        for source, address, subject, share in _OTHERS
    ]
    return (
        f"### Fraction of I/Os within {100 * TOLERANCE:.0f} % of their latency\n\n"
        + _prose(
            "Das Sharma et al. count the individual I/Os whose simulated latency is within 10 % "
            "of the measured latency. SSD-iq publishes only percentiles, so this section compares "
            "distributions: the fraction of quantiles where the simulated latency is within 10 % "
            "of the published latency. Between two percentiles, the logarithm of the latency "
            "is interpolated linearly in −log10(1 − q). I/Os faster than the median, or beyond the "
            "highest published percentile, do not count. A distribution ignores which I/Os are "
            "slow, so this metric is more lenient than that of the study."
        )
        + "\n"
        + _table(header, rows)
    )


def _by_operation(compared: Sequence[Distribution]) -> Iterator[tuple[str, list[Distribution]]]:
    for operation in ("read", "write"):
        loops = [loop for loop in compared if loop.operation == operation]
        if loops:
            drives = len({loop.drive for loop in loops})
            yield f"{operation}s of {len(loops)} open loops on {drives} drives", loops


def _spread(loops: Sequence[Distribution]) -> str:
    shares = [loop.share_pct for loop in loops]
    return f"{fmean(shares):.0f} % (median of the loads {median(shares):.0f} %)"


def _prose(*paragraphs: str) -> str:
    return "\n".join(
        fill(text, _COLUMNS, break_long_words=False, break_on_hyphens=False) + "\n"
        for text in paragraphs
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(line)} |\n" for line in (header, *rows))
    return "".join((head, "|---" * len(header) + "|\n", *body))


def replaced(page: str) -> str:
    """Return the page with a new section. Raises ValueError if the page has no such section."""
    before, title, rest = page.partition(TITLE)
    if not title:
        raise ValueError(f"the page has no section '{TITLE.strip()}'")
    return f"{before}{section()}\n## {rest.partition(chr(10) + '## ')[2]}"


# -- quantile share --------------------------------------------------------------------------------

# Percentage of I/Os whose simulated latency is within 10 % of the measured latency, from
# percentiles.
#
# Das Sharma, Ji, Jeong and Kim (IEEE CAL 24(2), 2025) compare the latency of each I/O. If a source
# publishes only percentiles, the distributions can be compared: the metric is the fraction of
# quantiles where the simulated latency is within 10 % of the measured latency. This distribution
# metric is more lenient, because it ignores which I/Os are slow.
#
# The logarithm of the latency is interpolated linearly in -log10(1 - q) between two percentiles.
# I/Os below the lowest or beyond the highest percentile do not count, because their latencies are
# unknown.

TOLERANCE = 0.10
_FEWEST = 3  # Minimum number of percentiles in a distribution.
_MEDIAN = 0.5  # Quantile that every distribution must contain.
_METRIC = re.compile(r"(read|write) latency p([\d.]+)")


@dataclass(frozen=True)
class Distribution:
    """Published and simulated latencies of reads or writes in an open loop."""

    drive: str
    operation: str  # Operation: "read" or "write".
    rate_iops: float  # Arrival rate of the open loop.
    latencies: Mapping[float, tuple[float, float]]  # Published and simulated latencies by quantile.

    @property
    def share_pct(self) -> float:
        """Percentage of the I/Os with a latency within 10 %.

        Only I/Os between the lowest and the highest quantile count.
        """
        return 100 * share_within(self.latencies)


def share_within(
    latencies: Mapping[float, tuple[float, float]], tolerance: float = TOLERANCE
) -> float:
    """Return the fraction (0 to 1) of the quantiles where the latencies agree.

    Args:
        latencies: published and simulated latency by quantile, for two quantiles or more, all below
            1. Both latencies have the same unit.
        tolerance: largest relative difference of latencies that agree.
    """
    low, high = log(1 - tolerance), log(1 + tolerance)
    points = [(-log10(1 - q), log(ours / real)) for q, (real, ours) in sorted(latencies.items())]
    mass = sum(_mass_between(a, b, low, high) for a, b in pairwise(points))
    return mass / (_beyond(points[0][0]) - _beyond(points[-1][0]))


def _beyond(x: float) -> float:
    """Return the fraction of the I/Os beyond the quantile with -log10(1 - q) = `x`."""
    return float(10**-x)


def _mass_between(a: tuple[float, float], b: tuple[float, float], low: float, high: float) -> float:
    """Return the fraction of a segment's I/Os whose log ratio is between `low` and `high`."""
    (x0, y0), (x1, y1) = a, b
    if y0 == y1:
        return _beyond(x0) - _beyond(x1) if low <= y0 <= high else 0.0
    crossings = (x0 + (limit - y0) * (x1 - x0) / (y1 - y0) for limit in (low, high))
    start, end = sorted(min(x1, max(x0, x)) for x in crossings)
    return _beyond(start) - _beyond(end)


def distributions(rows: Iterable[SsdIqPrediction]) -> list[Distribution]:
    """Return the distributions of open loops with a median and at least two more percentiles."""
    by_loop: dict[tuple[str, str, float], dict[float, tuple[float, float]]] = {}
    for row in rows:
        match = _METRIC.fullmatch(row.metric)
        if match is not None and isinstance(row.load, OpenLoop):
            latencies = by_loop.setdefault((row.drive, match[1], row.load.rate_iops), {})
            latencies[float(match[2]) / 100] = (row.value, row.simulated)
    return [
        Distribution(*key, latencies)
        for key, latencies in by_loop.items()
        if _MEDIAN in latencies and len(latencies) >= _FEWEST
    ]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(replaced(path.read_text(encoding="utf-8")), encoding="utf-8")
