"""Formatting of numbers."""

from __future__ import annotations

import math

import pytest

from writecliff import units
from writecliff.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (9.8765, "9.88"),
        (9.996, "10.0"),
        (0.09996, "0.100"),
        (12345.6, "12,346"),
        (math.nan, "-"),
        (None, "-"),
    ],
)
def test_significant(value: float | None, text: str) -> None:
    assert units.significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (850, "850.0 ns"),
        (1_500, "1.500 µs"),
        (10_490_000, "10.49 ms"),
        (1.132e9, "1.132 s"),
        (None, "-"),
    ],
)
def test_latency(value: float | None, text: str) -> None:
    assert units.latency(value) == text


def test_a_table_keeps_its_unit() -> None:
    unit = units.common_unit([10_490_000], units.LATENCY_UNITS)
    assert [units.latency(v, unit) for v in (900_000, 10_490_000, 1_132_000_000)] == [
        "0.9000 ms",
        "10.49 ms",
        "1,132 ms",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (120_034_123_776, "120 GB"),
        (1_920_383_410_176, "1.92 TB"),
        (2_000_398_934_016, "2 TB"),
        (268_435_456, "268 MB"),
    ],
)
def test_capacity_is_what_the_label_says(value: int, text: str) -> None:
    assert units.size(value) == text


def test_time_unit_by_length_of_the_run() -> None:
    lengths_s = (60, 3600, 6 * 3600)
    assert [units.time_unit(s * 1e9).name for s in lengths_s] == ["s", "min", "h"]


@pytest.mark.parametrize(
    ("iso", "text"),
    [
        ("2013-03-02T15:30:00+00:00", "03/02/2013 03:30 PM UTC"),
        ("2026-11-21T00:05:00-05:30", "11/21/2026 12:05 AM UTC-05:30"),
    ],
)
def test_date_time(iso: str, text: str) -> None:
    assert units.date_time(iso) == text


def test_nines() -> None:
    assert [units.nines(q) for q in (0.5, 0.99, 0.999, 0.99999)] == [
        "50 %", "99 %", "99.9 %", "99.999 %",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("10GB", 10**10), ("8 GiB", 8 << 30), ("1.5kB", 1500), ("4096", 4096), (" 1 TB ", 10**12)],
)
def test_parse_size(text: str, size_bytes: int) -> None:
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("10G", 'write "10 GB" or "10 GiB"'),
        ("64 mib", 'did you mean "64 MiB"?'),
        ("large", "specify a size with its unit, such as 500MB"),
        ("-1 MB", "specify a size with its unit, such as 500MB"),
        ("", "specify a size with its unit, such as 500MB"),
    ],
)
def test_a_size_that_is_invalid(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"^invalid size '{text}'$") as caught:
        units.parse_size(text)
    assert hint in str(caught.value.hint)


def test_throughput_is_decimal() -> None:
    assert units.throughput(551_349_000.0) == "551.3 MB/s"
    assert units.throughput(None) == "-"
