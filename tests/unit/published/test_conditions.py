"""The rules by which conditions follow from what sources say, one by one."""

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
    preset_of,
)
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.measure import loads_by_drive

FIGURE = PublishedFigure(
    "s", "i", "pm863-960", "", "random", 4096, 70.0, 32, "iops", 1.0, "IOPS", ""
)


def _load(**changes: object) -> Load:
    found = condition(replace(FIGURE, **changes))  # type: ignore[arg-type]
    assert found is not None and found.load is not None
    return found.load


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
        ({"read_pct": 100.0, "outstanding": 1}, 60.0),  # few I/Os, so that percentiles need time
        ({"read_pct": 100.0, "metric": "iops_stddev"}, 60.0),
        ({"metric": "latency_max"}, 300.0),  # five rounds of a minute
        ({"metric": "latency_p99.9"}, 60.0),
    ],
)
def test_how_long(changes: dict[str, object], seconds: float) -> None:
    assert _load(**changes).seconds == seconds


def test_rated_writes_come_from_sustained_4_kib_writes() -> None:
    wanted = Load("sustained", "random", 4096, 0.0, 32, 60.0)
    for metric in ("tbw", "dwpd"):
        found = condition(replace(FIGURE, metric=metric, access="", read_pct=None))
        assert found == Condition("pm863-960", metric, wanted)


def test_steady_and_fresh_figures_are_of_the_same_metric() -> None:
    metrics = {"iops_steady": "iops", "iops_fob": "iops", "throughput_fob": "throughput"}
    for metric, measured in metrics.items():
        found = condition(replace(FIGURE, metric=metric))
        assert found is not None and found.metric == measured


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
        {"access": "messenger"},
        {"metric": "lifetime_ratio_streams_vs_none", "item": "Cassandra"},
    ],
)
def test_what_corresponds_to_nothing_has_none(changes: dict[str, object]) -> None:
    assert condition(replace(FIGURE, **changes)) is None  # type: ignore[arg-type]


def test_power_is_taken_under_what_its_name_says() -> None:
    def of(metric: str, read_pct: float | None = None) -> Load | None:
        found = condition(replace(FIGURE, metric=metric, access="", read_pct=read_pct))
        assert found is not None
        return found.load

    assert of("power_idle") is None
    reads, writes = of("power_active_read_max"), of("power_active_write_max")
    assert reads is not None and (reads.pattern, reads.read_pct) == ("sequential", 100.0)
    assert writes is not None and (writes.pattern, writes.read_pct) == ("sequential", 0.0)
    least, most = of("power_random_read_min"), of("power_random_read_max")
    assert least is not None and most is not None
    assert least.block_bytes < most.block_bytes == 128 * 1024
    at_random = of("power_random_write")
    assert at_random is not None and (at_random.state, at_random.read_pct) == ("sustained", 0.0)


def test_reads_come_before_writes_and_writes_like_the_state_first() -> None:
    reads = Load("sustained", "random", 4096, 100.0, 32, 10.0)
    writes = Load("sustained", "random", 4096, 0.0, 32, 10.0)
    large = Load("sustained", "random", 131072, 0.0, 32, 10.0)
    mixed = replace(writes, read_pct=70.0)
    ordered = sorted([large, writes, mixed, reads], key=lambda one: one.order)
    assert ordered == [reads, mixed, writes, large]


def test_names_of_sources_stand_for_presets() -> None:
    assert preset_of("pm863") == "pm863-960"
    assert preset_of("pm863-120") == "pm863-120"
    soon = {"nvme-ms-480"}  # multi-stream NVMe: comes with its interface
    assert set(ALIASES.values()) - soon <= set(preset_names())
    assert not set(ALIASES) & set(preset_names())


def test_states_are_explained() -> None:
    from writecliff.published.tables import STATES

    assert set(STATES) == set(conditions.State.__args__)  # type: ignore[attr-defined]


def test_the_order_of_loads_does_not_depend_on_hashes() -> None:
    """Loads of one drive come from a set, and their order decides their seeds."""
    known = (found for figure in read_figures() if (found := condition(figure)) is not None)
    drives = loads_by_drive(known)
    assert len(drives) > 20
    for loads in drives.values():
        assert len({load.order for load in loads}) == len(loads)
