"""The section of the validation page about current drives, from the stored predictions alone.

.venv/bin/python -m writecliff.published.held_out_page docs/validation.md

replaces the section in the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
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
    mean_kind,
    modern_rows,
    score_of,
    ssd_iq,
    tail_kind,
    winners,
)
from writecliff.published.modern import split
from writecliff.published.predictions import SSD_IQ_PREDICTIONS, read_ssd_iq_predictions
from writecliff.published.quantile_share import TOLERANCE, Distribution, distributions
from writecliff.published.scores import PairwiseComparison, comparisons_of

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
# Share of I/Os within 10 % of their latency, as published: source, subject, share in %.
_OTHERS = (
    ("Das Sharma, Ji, Jeong, Kim, IEEE CAL 24(2), 2025", "https://doi.org/10.1109/LCA.2025.3581580",
     "existing simulators and models; single I/Os", "6 to 37 %"),
    ("the same", "", "their model, trained on a trace of the drive; single I/Os", "85 to 95 %"),
)  # fmt: skip


def section() -> str:
    """Return the section as Markdown."""
    parts = (TITLE, _intro(), _headline(), _sheets(), _skew(), _tails(), _endurance(),
             _winners(), _within())  # fmt: skip
    return "\n".join(parts)


def _intro() -> str:
    return _prose(
        "Half of the catalogue is derived from data sheets by rule. This section is made from "
        "stored predictions (`python -m writecliff.published.held_out_page`): held-out figures of "
        "[data sheets and reviews](reference/drives-of-today.md) (`reproduce modern --short`), and "
        "measurements of four drives under skewed, static and open-loop loads "
        "([SSD-iq](guides/catalogue.md#skewed-and-static-data-ssd-iq), `reproduce ssd-iq`). "
        "`choose` takes its errors from the same predictions, by kind of load. The error of a kind "
        f"with fewer than {FEWEST} figures counts as not known.",
        "*In view* marks figures that the author of the rule had seen before a constant was set. "
        "Their error is a lower bound for other drives. The rule meets the figures from which it "
        "derives a drive by construction, so their errors are not listed. The rule was revised "
        "twice after errors of held-out figures had been seen ([method](guides/catalogue.md"
        "#drives-of-today)).",
    )


def _headline() -> str:
    """Return what the error of all held-out rates is made of."""
    rates = [one for one in current_drives() if one.kind in (*_RATES, MIXES)]
    storage_class = [one for one in rates if one.family in SCM_FAMILIES]
    flash = [one for one in rates if one.family not in SCM_FAMILIES]
    groups = {
        f"pure loads on flash{_WITHOUT}": [f for f in flash if f.kind != MIXES and not f.known],
        "rates that repeat a figure of the same family": [f for f in flash if f.known],
        "mixes (in view)": [f for f in flash if f.kind == MIXES],
        "storage-class memory": storage_class,
        "all": rates,
    }
    rows = [
        (name, str(len(own)), f"{median(one.error for one in own):.1f} %")
        for name, own in groups.items()
        if own
    ]
    return (
        "### Composition of the error of all rates\n\n"
        + _prose("One number for all held-out rates hides kinds of loads that differ.")
        + "\n"
        + _table(("held-out rates", "figures", "median error"), rows)
    )


_WITHOUT = ", without repetitions"


def _sheets() -> str:
    figures = by_kind(f for f in current_drives() if f.family not in SCM_FAMILIES)
    rows = []
    for kind in (*_RATES, MIXES, *_MEANS, CACHE_SIZE):
        own = figures.get(kind, [])
        counted = [figure for figure in own if not figure.known]
        if counted:
            rows.append((f"{kind}{_in_view(counted)}", *_cells(score_of(counted)), _known(own)))
    header = ("kind of load", *_HEAD, "not counted")
    return (
        "### Data sheets and reviews: held-out figures\n\n"
        + _table(header, rows)
        + "\n"
        + _prose(
            "A repetition has the value of a figure of the same family that the rule knows. A "
            "constant is a latency that the rule predicts alike for drives of several families; no "
            "figure of a drive tests it."
        )
    )


_HEAD = ("figures", "median", "90th percentile", "largest", "within 10 %")


def _known(own: Sequence[HeldOut]) -> str:
    counts = {
        word: sum(figure.known == reason for figure in own)
        for reason, word in ((REPEATED, "repetition"), (CONSTANT, "constant"))
    }
    return ", ".join(
        f"{count} {word}{'' if count == 1 else 's'}" for word, count in counts.items() if count
    )


def _in_view(figures: Iterable[HeldOut]) -> str:
    return " (in view)" if any(figure.in_view for figure in figures) else ""


def _cells(score: KindScore | None) -> tuple[str, ...]:
    if score is None:
        return ("0", *[""] * (len(_HEAD) - 1))
    values = (score.median, score.p90, score.largest)
    texts = (f"{value:.1f} %" if score.unit == "%" else f"{value:.3g} x" for value in values)
    return (str(score.figures), *texts, f"{score.within_pct:.0f} %")


def _skew() -> str:
    figures = by_kind(ssd_iq())
    drives = ", ".join(dict.fromkeys(figure.drive for figure in ssd_iq()))
    rows = [(kind, *_cells(score_of(figures[kind]))) for kind in _LOADS if kind in figures]
    return (
        "### Skewed and static data, zones: SSD-iq\n\n"
        + _prose(
            f"{drives}, derived from data sheets. A load of a drive counts once. The sheet states "
            "the rate of uniform writes, so that row shows how well the rule meets it. No constant "
            "was set from the other rows, but garbage-collection policies were compared with the "
            "rates relative to uniform writes. The averaging window was placed after a two-zone "
            "figure of 7450 MAX had been seen."
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
                own = figures.get(tail_kind(statistic, whose, full_rate=full_rate))
                if own:
                    where = FULL_RATE if full_rate else LIGHT
                    rows.append((f"{statistic} of {whose}", where, *_cells(score_of(own))))
    header = ("percentile", "open loop", *_HEAD[:-1], f"within {FACTOR:g} x")
    return (
        "### Tails (in view)\n\n"
        + _prose(
            "Service times of SSD-iq's probe beside Poisson arrivals of writes, as factors between "
            "published and simulated. Below full rate: less than "
            f"{100 * FULL_RATE_SHARE:.0f} % of the largest rate of the drive. The class defaults "
            "of tails were set with some of these latencies in view. No tail of reads alone on a "
            "current drive is stored, and no maximum: do not take maxima from a simulated drive."
        )
        + "\n"
        + _table(header, rows)
    )


def _endurance() -> str:
    own = [figure for figure in ssd_iq() if figure.kind == WRITE_AMPLIFICATION]
    drives = ", ".join(dict.fromkeys(figure.drive for figure in own))
    score = score_of(own)
    known = "" if score is None else f": {score.median:.1f} % ({score.figures} figures)"
    return "### Endurance\n\n" + _prose(
        f"Only the write amplification that {drives or 'no drive'} reports is compared with "
        f"measurements{known}. Device files contain the rated TBW of their sheets, so no TBW is "
        "held out, and the cycles of the flash are not published. The error of a life that ends "
        "by cycles is not known."
    )


# -- winners ---------------------------------------------------------------------------------------


def _winners() -> str:
    own = by_kind(ssd_iq())
    compared = comparisons_of(modern_rows())
    rows = [
        ("pure loads, data sheets", *_right(one for one in compared if not one.mixed)),
        ("the same, a figure of the pair held out",
         *_right(one for one in _held_out_comparisons() if not one.mixed)),
        ("mixes, data sheets (in view)", *_right(one for one in compared if one.mixed)),
    ]  # fmt: skip
    for name, kinds in _WINNER_KINDS.items():
        figures = [figure for kind in kinds for figure in own.get(kind, ())]
        rows.append((name, *_won(winners(figures)), *_won(winners(figures, most=CLOSE))))
    return (
        "### The better of two drives\n\n"
        + _prose(
            "Pairs of drives under the same load in one source, whose published figures differ by "
            "more than 5 %. Data sheets state pure loads almost alone, and the rule knows most of "
            "these figures."
        )
        + "\n"
        + _table(("load", *_WON, *(f"{word}, {_NEAR}" for word in _WON)), rows)
    )


CLOSE = 2.0  # factor up to which two published figures are close
_WON, _NEAR = ("pairs", "right winner"), f"within {CLOSE:g} x"
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
    """Yield the comparisons of which a figure is held out."""
    parts = split()
    known = {(f.device, f.metric, f.label, f.value) for f, part in parts.items() if part == "fit"}
    for one in comparisons_of(modern_rows()):
        pair = zip(one.drives, one.published, strict=True)
        if any((drive, one.metric, one.label, value) not in known for drive, value in pair):
            yield one


def _right(compared: Iterable[PairwiseComparison]) -> tuple[str, ...]:
    clear = [one for one in compared if one.clear]
    close = [one for one in clear if max(one.published) <= CLOSE * min(one.published)]
    found = (Winners(len(own), sum(one.right for one in own)) for own in (clear, close))
    return tuple(cell for one in found for cell in _won(one))


def _won(found: Winners) -> tuple[str, str]:
    share = f" ({100 * found.right / found.pairs:.0f} %)" if found.pairs else ""
    return str(found.pairs), f"{found.right}{share}"


# -- share within 10 % -----------------------------------------------------------------------------


def _within() -> str:
    found = distributions(read_ssd_iq_predictions(SSD_IQ_PREDICTIONS))
    header = ("source", "subject", f"share within {100 * TOLERANCE:.0f} %")
    rows = [
        ("writecliff, SSD-iq (in view)", f"{text}; distributions", _spread(own))
        for text, own in _by_operation(found)
    ]
    rows += [
        (f"[{source}]({address})" if address else source, subject, share)
        for source, address, subject, share in _OTHERS
    ]
    return (
        f"### Share of I/Os within {100 * TOLERANCE:.0f} % of their latency\n\n"
        + _prose(
            "A study of 2025 counts the single I/Os whose simulated latency is within 10 % of the "
            "measured one. SSD-iq has percentiles, so the distributions are compared: the share of "
            "the quantiles at which the simulated latency is within 10 % of the published one. "
            "Between two percentiles, the logarithm of the latency is linear in −log10(1 − q). "
            "I/Os faster than the median, or beyond the highest published percentile, do not "
            "count. A distribution ignores which I/O is slow, so this is milder than the study's "
            "measure."
        )
        + "\n"
        + _table(header, rows)
    )


def _by_operation(found: Sequence[Distribution]) -> Iterator[tuple[str, list[Distribution]]]:
    for operation in ("read", "write"):
        own = [one for one in found if one.operation == operation]
        if own:
            drives = len({one.drive for one in own})
            yield f"{operation}s of {len(own)} open loops on {drives} drives", own


def _spread(own: Sequence[Distribution]) -> str:
    shares = [one.share_pct for one in own]
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
    """Return the page with the section as it is now. Raises ValueError: the page has none."""
    before, title, rest = page.partition(TITLE)
    if not title:
        raise ValueError(f"the page has no section '{TITLE.strip()}'")
    return f"{before}{section()}\n## {rest.partition(chr(10) + '## ')[2]}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(replaced(path.read_text(encoding="utf-8")), encoding="utf-8")
