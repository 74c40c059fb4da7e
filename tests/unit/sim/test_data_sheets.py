"""Drives derived from data sheets: valid for any sheet, and close to the sheet's figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cli import CommandLine
from writecliff.devices import describe_device
from writecliff.devices.class_defaults import RATED_CYCLES
from writecliff.devices.derive import (
    Reads,
    device_text,
    dies_of,
    drive_amplification,
    needed_cycles,
    uniform_amplification,
)
from writecliff.devices.edit import value_of
from writecliff.devices.generations import BITS, GENERATIONS, raw_bytes_of
from writecliff.devices.quantities import number
from writecliff.devices.sheet import CELLS, INTERFACES, sheet_of
from writecliff.errors import ConfigError


def optional(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | values


@settings(max_examples=60)
@given(
    st.fixed_dictionaries(
        {
            "interface": st.sampled_from(INTERFACES),
            "capacity": st.sampled_from(["120GB", "960GB", "1TB", "3.84TB", "15.36TB"]),
            "year": st.integers(2009, 2027),
            "cell": optional(st.sampled_from(CELLS)),
            "power_loss_protection": optional(st.sampled_from(["yes", "no"])),
            "dram": optional(st.sampled_from(["yes", "no"])),
            "sequential_read": optional(st.integers(200, 560).map("{} MB/s".format)),
            "sequential_write": optional(st.integers(100, 520).map("{} MB/s".format)),
            "random_read": optional(st.integers(5000, 1_500_000)),
            "random_write": optional(st.integers(2000, 900_000)),
            "read_latency": optional(st.integers(20, 300).map("{} us".format)),
            "write_latency": optional(st.integers(8, 200).map("{} us".format)),
            "tbw": optional(st.integers(20, 9000).map("{} TB".format)),
        }
    )
)
def test_any_sheet_makes_a_drive_with_a_reason_for_every_value(sheet: dict[str, object]) -> None:
    text = device_text(sheet_of(sheet))
    drive = describe_device(text, "new.toml")
    assert 0.049 < (drive.raw_bytes or 0) / drive.capacity_bytes - 1 < 1.1
    assert all(row.source for row in drive.values)


def test_planes_read_by_themselves_where_reads_need_it() -> None:
    newest, bits, raw = GENERATIONS[-1], BITS["tlc"], 1 << 40

    def reads(iops: float, alone_us: float = 60) -> Reads:
        return Reads(iops, 0.0, 42_000, alone_us * 1000, 256)

    few, many, none = reads(50_000), reads(800_000), reads(0.0)
    for usual, stated, want in (
        (few, few, (16, 4, False, 1)),  # The drive has 512 Gbit dies, as manufactured.
        (many, none, (16, 4, True, 1)),
        (many, many, (16, 4, True, 1)),
        # At 3 million reads per second with 256 outstanding reads, a read takes 85 us. A single
        # read takes 80 us, so at most 5.3 us remain for waiting. Only smaller and slower dies have
        # shorter waits.
        (many, reads(3_000_000, 80), (128, 4, True, 8)),
    ):
        dies = dies_of(raw, newest, bits, usual, stated)
        assert (dies.count, dies.planes, dies.independent, dies.slower) == want
    assert dies.why == "enough for 3,000,000 reads a second at queue depth 256"
    assert not dies_of(raw, GENERATIONS[3], bits, many, none).independent


def test_what_dies_program_does_not_depend_on_how_they_read() -> None:
    def rate(text: str) -> float:
        dies = value_of(text, "flash.channels") * value_of(text, "flash.dies_per_channel")
        planes = value_of(text, "flash.planes_per_die")
        return dies * planes / number(value_of(text, "flash.program")[0])

    answers = {"interface": "pcie4", "capacity": "1TB", "year": "2023", "cell": "qlc"}
    slow, fast = (
        device_text(sheet_of({**answers, "random_read": reads})) for reads in (20_000, 1_200_000)
    )
    assert "independent_plane_reads = true" in fast
    assert "independent_plane_reads" not in slow
    assert rate(fast) == pytest.approx(rate(slow), rel=0.01)


@pytest.mark.parametrize(
    ("interface", "year", "has_them"),
    [("pcie3", "2017", True), ("pcie3", "2016", False), ("sata", "2018", False)],
)
def test_nvme_drives_of_2017_and_later_have_class_defaults(
    interface: str, year: str, has_them: bool
) -> None:
    answers = {"interface": interface, "capacity": "960GB", "year": year}
    answers |= {"random_read": "90000", "random_write": "20000", "power_loss_protection": "yes"}
    text = device_text(sheet_of(answers))
    keys = ("lookup_time", "suspend_time", "erase_suspend_step", "[ecc]", "[housekeeping]")
    assert all((key in text) is has_them for key in keys)


def test_flash_lasts_for_the_rated_random_writes_of_a_data_centre_drive() -> None:
    """Check that twice the spare flash needs fewer cycles for equal drive writes.

    Check that cycles follow from the drive's own write amplification.
    """
    answers = {"interface": "pcie4", "year": "2022", "cell": "tlc", "power_loss_protection": "yes"}
    for capacity, tbw in (("3840GB", "14016 TB"), ("3200GB", "17520 TB")):
        sheet = sheet_of({**answers, "capacity": capacity, "tbw": tbw})
        drive = describe_device(device_text(sheet), "new.toml")
        flash_writes = (drive.rated_cycles or 0) * (drive.raw_bytes or 0)
        assert flash_writes == pytest.approx(
            drive_amplification(sheet) * (sheet.tbw or 0), rel=0.01
        )
    little = device_text(sheet_of({**answers, "capacity": "3840GB", "tbw": "2000 TB"}))
    assert value_of(little, "flash.rated_cycles") == RATED_CYCLES["tlc"]
    client = sheet_of(
        {**answers, "capacity": "1TB", "power_loss_protection": "no", "tbw": "3000 TB"}
    )
    assert needed_cycles(client) * raw_bytes_of(1e12) == pytest.approx(1.5 * 3e15)


@pytest.mark.parametrize("protected", ["yes", "no"])
def test_only_data_centre_drives_have_class_defaults_of_power(protected: str) -> None:
    answers = {"interface": "pcie4", "capacity": "1TB", "year": "2022"}
    text = device_text(sheet_of({**answers, "power_loss_protection": protected}))
    assert describe_device(text, "new.toml").has("power.program") == (protected == "yes")


@pytest.mark.parametrize("spare", [1.05, 1.15, 1.28, 2.0])
def test_theory_of_uniform_writes(spare: float) -> None:
    """Check that the valid fraction of a victim is exp(-spare / A).

    This is the probability that a slot survives a pass of the log over spare x capacity slots.
    """
    amplification = uniform_amplification(spare)
    assert 1 - 1 / amplification == pytest.approx(math.exp(-spare / amplification), rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            "--capacity 1TB",
            "missing data sheet values: interface, year",
            "for example --interface pcie4",
        ),
        ("--interface sata --capacity 1T --year 2020", "capacity is '1T'", "user capacity"),
        ("--interface sta --capacity 1TB --year 2020", "unknown interface 'sta'", "'sata'"),
        ("--interface sata --capacity 1TB --year 20", "year is '20'", "year in which"),
        (
            "--interface sata --capacity 1TB --year 2020 --dram maybe",
            "dram is 'maybe'",
            "yes or no",
        ),
        (
            "--interface sata --capacity 1TB --year 2020 --sequential-read 3GB/s",
            "3,000 MB/s exceeds the bandwidth of SATA 6Gb/s",
            "check the --interface option",
        ),
    ],
)
def test_mistakes_in_a_sheet(
    capsys: pytest.CaptureFixture[str], words: str, message: str, hint: str
) -> None:
    completed = CommandLine(capsys)(f"device new x {words}")
    assert completed.code == 2 and completed.out == ""
    assert f"error: {message}" in completed.err and hint in completed.err


def test_an_unknown_answer_is_named() -> None:
    with pytest.raises(ConfigError, match="unknown answer 'capacty'"):
        sheet_of({"capacty": "1TB"})
