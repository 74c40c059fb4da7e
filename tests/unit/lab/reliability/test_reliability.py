"""Campaigns on a small drive: features help, closed forms hold, and real drives are rejected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from writecliff.errors import ConfigError
from writecliff.lab.reliability import CAMPAIGNS, run
from writecliff.lab.reliability.drive import FROM_FILE, with_section
from writecliff.lab.reliability.model import Result
from writecliff.lab.reliability.page import data, mapping, page
from writecliff.report.pages import render_page

DRIVE = """\
name = "small"
description = "a small drive that wears out soon"
model = "small"
user_capacity = "180 MB"
[flash]
channels = 2
dies_per_channel = 2
planes_per_die = 2
blocks_per_plane = 160
pages_per_block = 12
page = "16 KiB"
cell = "TLC"
multi_plane = true
one_shot = true
read = ["60 us", "60 us", "60 us"]
program = ["1.5 ms"]
erase = "3 ms"
bus = "400 MB/s"
command = "300 ns"
rated_cycles = 100
[ftl]
streams = 1
gc = "greedy"
gc_destination = "per-stream"
wear_leveling = "dynamic"
gc_high_watermark = 5
gc_low_watermark = 3
gc_idle_watermark = 8
[controller]
write_buffer = "2 MiB"
power_loss_protection = true
write_cache = true
command_time = "5 us"
latency = "8 us"
reads_in_a_row = 16
suspends_per_operation = 8
idle_delay = "20 ms"
[link]
interface = "SATA 6Gb/s"
bandwidth = "560 MB/s"
duplex = "half"
command = "2 us"
queues = 1
queue_depth = 32
"""


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("drive") / "small.toml"
    path.write_text(DRIVE, encoding="utf-8")
    return f"sim:{path}"


@pytest.fixture(scope="module")
def protected(drive: str) -> Result:
    return run("power-loss-protection", drive)


@pytest.fixture(scope="module")
def throttled(drive: str) -> Result:
    return run("thermal-throttling", drive)


def values_of(result: Result, what: str) -> list[float]:
    finding = next(finding for finding in result.findings if finding.what == what)
    return [float(value) for value in finding.values if not isinstance(value, str | None)]


def shown(result: Result) -> str:
    """Return the page, which must have a CSV file per plot."""
    html = render_page(page(result))
    assert {f"{plot.name}.csv" for plot in result.plots} <= {file.name for file in data(result)}
    assert all(setting.key in html for setting in result.settings)
    return html


def test_spare_blocks_make_the_drive_live_longer_and_then_it_is_read_only(drive: str) -> None:
    result = run("wear-out", drive)
    long, short = values_of(result, "written until the end (TB)")
    assert long > 1.3 * short
    spare = next(plot for plot in result.plots if plot.name == "spare")
    assert [curve.y[-1] for curve in spare.curves] == [0.0, 0.0]
    # The drive has few blocks, so its figures vary.
    assert all(abs(check.error_pct) < 60 for check in result.checks)
    assert "read-only" in shown(result)


def test_capacitors_keep_what_was_confirmed_and_nothing_else_does_at_speed(
    protected: Result,
) -> None:
    result = protected
    with_, without, uncached = values_of(result, "confirmed writes lost, at most")
    assert (with_, uncached) == (0, 0)
    assert 0 < without <= (2 << 20) / 4096  # The bound is the buffer capacity in slots.
    iops = values_of(result, "write IOPS until the cut")
    assert iops[2] < iops[0]
    shown(result)


def test_each_layer_of_protection_leaves_fewer_silent_reads(drive: str) -> None:
    result = run("end-to-end-protection", drive)
    silent = values_of(result, "reads of wrong data in silence")
    assert silent == sorted(silent, reverse=True)
    assert silent[0] > 0
    shown(result)


def test_refresh_keeps_uber_down_and_retention_follows_arrhenius(drive: str) -> None:
    result = run("cell-care", drive)
    refreshed, hot, cool = values_of(result, "UBER to expect")
    assert refreshed < hot / 1e3 and cool < hot
    assert all(abs(check.error_pct) < 1 for check in result.checks)
    disturbed = next(plot for plot in result.plots if plot.name == "read-disturb")
    assert disturbed.curves[0].y[-1] < disturbed.curves[1].y[-1]
    shown(result)


def test_throttling_trades_speed_for_temperature(throttled: Result) -> None:
    result = throttled
    cool, hot = values_of(result, "highest temperature (C)")
    slow, fast = values_of(result, "sustained write throughput (MB/s)")
    assert cool < hot and slow < fast
    assert all(abs(check.error_pct) < 3 for check in result.checks)
    shown(result)


def test_a_hotter_drive_needs_the_second_stage(
    drive: str, throttled: Result, tmp_path: Path
) -> None:
    text = Path(drive.removeprefix("sim:")).read_text()
    (tmp_path / "hot.toml").write_text(
        f'{text}\n[power]\nidle = "2 W"\n[thermal]\nambient = "60 C"\nresistance = "6 C/W"\ncapacity = "40 J/C"\n'
    )
    hot = run("thermal-throttling", f"sim:{tmp_path / 'hot.toml'}")
    for result, expected in ((throttled, False), (hot, True)):
        time, _ = values_of(result, "time throttled, cooling included (min)")
        heavy, never = values_of(result, "of it in stage 2 (min)")
        assert (heavy > 0) == expected and heavy < time and never == 0
        shown(result)
    limits = next(plot for plot in hot.plots if plot.name == "celsius").limits
    assert [name for name, _ in limits][::2] == ["stage 1 above", "stage 2 above"]


def test_parity_serves_what_a_lost_die_held_and_the_closed_forms_hold(drive: str) -> None:
    result = run("die-failure", drive)
    failed, gone = values_of(result, "reads that fail at the end (%)")
    assert failed == 0
    assert 20 < gone < 30  # One of four dies has failed.
    relocated, none = values_of(result, "relocated from the die (GB)")
    assert relocated > 0.02 and none == 0
    with_, without = values_of(result, "UBER to expect after 3 months at the rated wear")
    assert with_ < without / 1e3
    rebuilt = next(plot for plot in result.plots if plot.name == "rebuilt-pct")
    assert max(rebuilt.curves[0].y) > 10 and rebuilt.curves[0].y[-1] == 0
    assert all(abs(check.error_pct) < 0.5 for check in result.checks)
    shown(result)


def test_the_same_campaign_gives_the_same_page(drive: str, protected: Result) -> None:
    first, other = protected, run("power-loss-protection", drive)
    assert mapping(first) == mapping(other)
    assert render_page(page(first)) == render_page(page(other))


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_real_drive_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} needs a simulated drive: a real drive .+$"):
        run(name, "/dev/sdx")


def test_unknown_names_and_hard_disks_are_refused() -> None:
    with pytest.raises(ConfigError, match="wear-owt"):
        run("wear-owt", "sim:sata-tlc-120")
    with pytest.raises(ConfigError, match="hard disk"):
        run("wear-out", "sim:hdd-15k-80")


def test_a_section_of_the_drive_itself_is_kept_and_completed() -> None:
    text = DRIVE + '[bad_blocks]\nfailed_at_rated = "7 %"\n'
    values = {"failed_at_rated": ('"2 %"', "assumed"), "shape": ("4", "assumed")}
    changed, origins = with_section(text, "bad_blocks", values)
    assert 'failed_at_rated = "7 %"' in changed
    assert re.search(r"^shape = 4 +# assumed$", changed, re.MULTILINE)
    assert [(setting.value, setting.source) for setting in origins] == [
        ("7 %", FROM_FILE),
        ("4", "assumed"),
    ]


def test_the_command_writes_page_and_csv(drive: str, tmp_path: Path) -> None:
    from writecliff.lab.commands.cmd_reliability import reliability

    done = reliability(
        "power-loss-protection", on=drive, output=tmp_path / "x.html", csv=tmp_path / "csv"
    )
    assert done == 0
    assert (tmp_path / "x.html").read_text(encoding="utf-8").startswith("<!")
    assert {"lost.csv", "saved.csv", "ready.csv", "settings.csv"} == {
        path.name for path in (tmp_path / "csv").iterdir()
    }
