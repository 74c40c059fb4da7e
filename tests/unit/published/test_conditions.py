"""Rules that derive the conditions of figures from their sources."""

from __future__ import annotations

from dataclasses import replace

import pytest

from writecliff.devices import preset_names
from writecliff.published import conditions
from writecliff.published.conditions import (
    ALIASES,
    Condition,
    Load,
    baseline_condition,
    condition,
    measured_metric,
    parts_of,
    preset_of,
    profile_of,
)
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.measure import loads_by_drive

FIGURE = PublishedFigure(
    "s", "i", "pm863-960", "", "random", 4096, 70.0, 32, "iops", 1.0, "IOPS", ""
)


def _load(**changes: object) -> Load:
    measured = condition(replace(FIGURE, **changes))  # type: ignore[arg-type]
    assert measured is not None and measured.load is not None
    return measured.load


def test_what_the_source_says_is_taken() -> None:
    load = _load(block_bytes=8192, read_pct=65.0, outstanding=7)
    assert load == Load("sustained", "random", 8192, 65.0, 7, 60.0)


def test_what_it_leaves_open_is_what_the_standard_recommends() -> None:
    random = _load(block_bytes=None, read_pct=None, outstanding=None)
    assert (random.block_bytes, random.read_pct, random.outstanding) == (4096, 0.0, 128)
    in_order = _load(access="sequential", block_bytes=None, read_pct=100.0, outstanding=None)
    assert (in_order.block_bytes, in_order.outstanding) == (128 * 1024, 32)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "sustained"),
        ({"access": "sequential"}, "fill"),
        ({"metric": "iops_fob"}, "fresh"),
        ({"metric": "throughput_fob", "access": "sequential"}, "fresh"),
        ({"note": "TC 4/QD 16, WCE, client"}, "client"),
        ({"device": "sata3-256-wce"}, "client"),
        ({"device": "sata3-256-wce", "metric": "latency_avg"}, "sustained"),
        ({"device": "sata3-256-wce", "access": "sequential"}, "fill"),
    ],
)
def test_states(changes: dict[str, object], state: str) -> None:
    assert _load(**changes).state == state


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({"read_pct": 100.0}, 10.0),
        ({"read_pct": 100.0, "outstanding": 1}, 60.0),  # With few I/Os, percentiles need time.
        ({"read_pct": 100.0, "metric": "iops_stddev"}, 1200.0),
        # Consistency needs one second in a thousand.
        ({"metric": "iops_consistency_read"}, 1200.0),
        ({"metric": "latency_max"}, 300.0),  # The load needs five one-minute rounds.
        ({"metric": "latency_max_read_improvement", "baseline": "mlc-a-800"}, 300.0),
        ({"access": "messenger", "metric": "latency_p99.99_read"}, 60.0),
        ({"metric": "latency_p99.9"}, 60.0),
    ],
)
def test_how_long(changes: dict[str, object], seconds: float) -> None:
    assert _load(**changes).seconds == seconds


def test_rated_writes_come_from_sustained_4_kib_writes() -> None:
    wanted = Load("sustained", "random", 4096, 0.0, 32, 60.0)
    for metric in ("tbw", "dwpd"):
        measured = condition(replace(FIGURE, metric=metric, access="", read_pct=None))
        assert measured == Condition("pm863-960", metric, wanted)


def test_steady_and_fresh_figures_are_of_the_same_metric() -> None:
    metrics = {"iops_steady": "iops", "iops_fob": "iops", "throughput_fob": "throughput"}
    for metric, expected in metrics.items():
        measured = condition(replace(FIGURE, metric=metric))
        assert measured is not None and measured.metric == expected


def test_data_of_another_kind_are_another_load() -> None:
    assert _load().compressible_pct == 0.0
    assert _load(compressible_pct=46.0) == replace(_load(), compressible_pct=46.0)
    amplification = condition(replace(FIGURE, metric="waf", access="sequential", read_pct=0.0))
    assert amplification is not None and amplification.metric == "waf"


def test_a_relative_figure_has_two_conditions() -> None:
    figure = replace(FIGURE, metric="iops_improvement", baseline="mlc-a-800")
    mine, other = condition(figure), baseline_condition(figure)
    assert mine is not None and other is not None
    assert (mine.device, other.device) == ("pm863-960", "mlc-a-800")
    assert mine.metric == other.metric == "iops"
    assert mine.load == other.load
    assert baseline_condition(FIGURE) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "iosp"},
        {"access": "dance"},
        {"metric": "iops_improvement"},  # There is no baseline.
        {"metric": "iops_improvement_min", "baseline": "mlc-a-800"},  # There is no range.
        {"depths": (1, 128)},  # The figure is neither a minimum nor a maximum.
        {"metric": "lifetime_ratio_streams_vs_none", "item": "Cassandra"},
    ],
)
def test_what_corresponds_to_nothing_has_none(changes: dict[str, object]) -> None:
    assert condition(replace(FIGURE, **changes)) is None  # type: ignore[arg-type]


def test_power_is_taken_under_what_its_name_says() -> None:
    def of(metric: str, read_pct: float | None = None) -> Load | None:
        measured = condition(replace(FIGURE, metric=metric, access="", read_pct=read_pct))
        assert measured is not None
        return measured.load

    assert of("power_idle") is None
    reads, writes = of("power_active_read_max"), of("power_active_write_max")
    assert reads is not None and (reads.pattern, reads.read_pct) == ("sequential", 100.0)
    assert writes is not None and (writes.pattern, writes.read_pct) == ("sequential", 0.0)
    least, most = of("power_random_read_min"), of("power_random_read_max")
    assert least is not None and most is not None
    assert least.block_bytes < most.block_bytes == 128 * 1024
    at_random = of("power_random_write")
    assert at_random is not None and (at_random.state, at_random.read_pct) == ("sustained", 0.0)


@pytest.mark.parametrize(
    ("metric", "measured"),
    [
        ("iops_read_improvement", "read_iops"),
        ("iops_write_improvement", "write_iops"),
        ("latency_p99.99_read_improvement", "latency_p99.99_read"),
        ("latency_max_write_improvement", "latency_max_write"),
        ("iops_improvement_min", "iops"),
        ("read_iops_stddev", "read_iops_stddev"),
        ("latency_max", "latency_max"),
    ],
)
def test_what_is_measured_for_a_metric(metric: str, measured: str) -> None:
    assert measured_metric(metric) == measured


@pytest.mark.parametrize(
    ("access", "item", "profile"),
    [
        ("messenger", "Figure 6 messenger", "messenger"),
        ("composite", "Figure 7 web server", "web-server"),
        ("composite", "Figure 10 database server", "database-server"),
        ("composite", "exchange server", "exchange-server"),
        ("file server", "", "file-server"),
        ("random", "Figure 7 web server", ""),
        ("composite", "Figure 7", ""),
    ],
)
def test_composite_loads_are_profiles(access: str, item: str, profile: str) -> None:
    assert profile_of(replace(FIGURE, access=access, item=item)) == profile


def test_a_profile_has_its_own_sizes_and_mix() -> None:
    figure = replace(FIGURE, access="messenger", block_bytes=None, read_pct=None, outstanding=None)
    measured = condition(figure)
    assert measured is not None and measured.load is not None and measured.load.mixed
    assert measured.load == Load("sustained", "random", None, None, None, 60.0, profile="messenger")
    assert not replace(measured.load, profile="web-server").mixed  # This profile only reads.


def test_a_range_has_a_part_at_each_power_of_two() -> None:
    changes = {"metric": "iops_improvement_max", "baseline": "mlc-a-800", "depths": (1, 12)}
    whole = replace(FIGURE, outstanding=None, **changes)  # type: ignore[arg-type]
    parts = parts_of(whole)
    assert [part.outstanding for part in parts] == [1, 2, 4, 8, 12]
    assert {part.metric for part in parts} == {"iops_improvement"}
    first = condition(parts[0])
    assert condition(whole) == first and first is not None
    assert parts_of(FIGURE) == (FIGURE,)


def test_mixed_loads() -> None:
    shares = {0.0: False, 70.0: True, 100.0: False}
    assert {share: _load(read_pct=share).mixed for share in shares} == shares


def test_names_of_sources_stand_for_presets() -> None:
    assert preset_of("pm863") == "pm863-960"
    assert preset_of("pm863-120") == "pm863-120"
    soon = {"nvme-ms-480"}  # Multi-stream NVMe has no preset yet.
    assert set(ALIASES.values()) - soon <= set(preset_names())
    assert not set(ALIASES) & set(preset_names())


def test_states_are_explained() -> None:
    from writecliff.lab.published.tables import STATES

    assert set(STATES) == set(conditions.STATES)


def test_the_order_of_loads_does_not_depend_on_hashes() -> None:
    """Check that the loads of a drive, which are a set, are written in a fixed order."""
    conditions = (
        measured for figure in read_figures() if (measured := condition(figure)) is not None
    )
    drives = loads_by_drive(conditions)
    assert len(drives) > 20
    for loads in drives.values():
        assert len({load.order for load in loads}) == len(loads)
