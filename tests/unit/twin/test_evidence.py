"""Measurements of a twin, their held-out figures, and their series."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from writecliff.devices import describe_device
from writecliff.devices.edit import value_of, with_values
from writecliff.devices.quantities import number
from writecliff.engines.preconditioned import recipe
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.procedures.model import History
from writecliff.procedures.twin import PARTS, Twin
from writecliff.procedures.twin_loads import EVERY, read_loads, write_loads
from writecliff.published.conditions import condition
from writecliff.published.figures import PublishedFigure, read_figures
from writecliff.published.sheet_check import figures_csv
from writecliff.twin.evidence import Curve
from writecliff.twin.hidden import USUAL, hidden_drive
from writecliff.twin.structure import alternatives, with_dies, with_page_times
from writecliff.twin.validation import OTHER_LOADS


@pytest.mark.parametrize("name", ["sata-tlc-120", "nvme-tlc-960"])
def test_every_third_load_of_a_kind_is_held_out(name: str) -> None:
    identity = SimEngine(name).identify()
    loads = [*read_loads(identity), *write_loads()]
    assert len(set(loads)) == len(loads)
    kinds = groupby(
        loads, key=lambda load: (load.pattern, min(load.read_pct, 1), load.read_pct == 100)
    )
    for _, kind in kinds:
        held_out = [load.held_out for load in kind]
        assert held_out == [n % EVERY == 0 for n in range(1, len(held_out) + 1)]
    # Data sheet figures are never held out, because the twin is derived from them.
    fitted = {(load.pattern, load.block_bytes, load.read_pct, load.outstanding)
              for load in loads if not load.held_out}  # fmt: skip
    assert {("random", 4096, 100.0, 1), ("sequential", 131072, 100.0, 32)} <= fitted


def test_the_validation_uses_other_loads() -> None:
    for name in USUAL:
        identity = SimEngine.from_text(hidden_drive(name)[0], f"{name}.toml").identify()
        measured = {
            (load.pattern, load.block_bytes // 1024, load.read_pct, load.outstanding)
            for load in Twin().loads(identity)
        }
        assert len(OTHER_LOADS) == 30
        assert not measured & set(OTHER_LOADS)


def test_gentle_measurements_write_nothing() -> None:
    identity = SimEngine("sata-tlc-120").identify()
    twin = Twin(gentle=True)
    steps = [step for stage in twin.stages(identity) for step in stage.steps(History(), 0)]
    assert steps
    assert all(job.read_pct == 100 for step in steps for job in step.workload.jobs)
    assert twin.plan(identity).write_bytes_max == 0


def test_the_plan_bounds_time_and_writes() -> None:
    identity = SimEngine("nvme-tlc-960").identify()
    plan = Twin().plan(identity)
    assert plan.device_time_max_ns is not None
    assert 3600e9 < plan.device_time_max_ns < 7200e9
    overwrites = [stage for stage in Twin().stages(identity) if stage.phase == "overwrite"]
    assert len(overwrites[0].steps(History(), 0)) == PARTS
    assert plan.write_bytes_max is not None
    assert plan.write_bytes_max > 3 * identity.capacity_bytes


@pytest.mark.parametrize("values", [{"seconds": 0.0}, {"rest_s": -1.0}, {"overwrite_minutes": 0.0}])
def test_invalid_lengths_are_rejected(values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be"):
        Twin.from_mapping(values)


def test_a_curve_shows_where_a_cache_ends() -> None:
    volume = np.arange(1, 101) * 1e9
    rate = np.where(volume <= 30e9, 2e9, 0.5e9)
    curve = Curve(volume, rate)
    assert curve.first == 2e9
    assert curve.last == 0.5e9
    assert curve.drop_bytes == 30e9
    noisy = rate.copy()
    noisy[10] = 0.1e9  # A single stall does not end the cache phase.
    assert Curve(volume, noisy).drop_bytes == 30e9
    assert Curve(volume, np.full(100, 1e9)).drop_bytes is None


def test_overwritten_is_a_share_of_the_capacity() -> None:
    fill, again = recipe("overwritten:50%", 1 << 30)
    assert fill.jobs[0].volume_bytes == 1 << 30
    assert again.jobs[0].volume_bytes == 1 << 29
    assert recipe("overwritten:200%", 1 << 30) == recipe("sustained", 1 << 30)
    for text in ("overwritten:", "overwritten:-1%", "overwritten:x%"):
        with pytest.raises(ConfigError, match="percentage from 0"):
            recipe(text, 1 << 30)


def test_a_table_can_contain_the_state_of_each_figure(tmp_path: Path) -> None:
    def figure(state: str) -> PublishedFigure:
        return PublishedFigure(
            source="here", item="", device="d", baseline="", access="random", block_bytes=4096,
            read_pct=0.0, outstanding=32, metric="iops", value=1000.0, unit="IOPS", note="",
            state=state,
        )  # fmt: skip

    figures = (figure("overwritten:50%"), figure(""))
    path = tmp_path / "figures.csv"
    path.write_text(figures_csv(figures))
    assert read_figures(path) == figures
    loads = [condition_.load for f in figures if (condition_ := condition(f)) is not None]
    assert [load.state for load in loads if load] == ["overwritten:50%", "sustained"]
    assert condition(figure("worn")) is None


def test_other_dies_keep_the_flash_and_its_speed() -> None:
    text = with_values(hidden_drive("sata")[0], {"ftl.streams": ("1", None)})
    before = describe_device(text, "a.toml")
    for dies in (1, 2, 8, 16):
        made = with_dies(text, dies)
        assert made is not None
        after = describe_device(made, "b.toml")
        assert before.raw_bytes is not None
        assert after.raw_bytes == pytest.approx(before.raw_bytes, rel=0.02)
        times = [number(value_of(device, "flash.program")) for device in (text, made)]
        assert times[1] / dies == pytest.approx(times[0] / 4, rel=0.01)
    assert all(
        describe_device(made, "c.toml").capacity_bytes == before.capacity_bytes
        for _, made in alternatives(text)
    )


def test_pages_read_as_differently_as_single_reads() -> None:
    text = hidden_drive("sata")[0]
    made = with_page_times(text, {3: (100e3, 110e3, 120e3)})
    assert value_of(made, "flash.read") == ["65 us", "75 us", "85 us"]
    assert with_page_times(text, {3: (100e3, 100e3, 100e3)}) == text
    assert with_page_times(text, {}) == text
