"""Power cuts of small drives: no guarantee is violated, and `validate power-cuts` reports them."""

from __future__ import annotations

import json

import pytest

from writecliff import _native
from writecliff.cli.main import main
from writecliff.lab.validate import power_cuts


def test_ten_thousand_cuts_break_no_promise() -> None:
    report = power_cuts.run(10_000, 1)
    assert report.failure is None
    assert sum(row.cuts for row in report.rows) == 10_000
    # The rows combine write cache, protection, four kinds of data placement, and no SLC cache or two
    # kinds of cache.
    assert len(report.rows) == 64
    for row in report.rows:
        # Only a volatile cache loses confirmed data. Deallocations do not count as writes.
        assert (row.torn_units == 0) == row.power_loss_protection
        assert (row.saved_slots > 0) == row.power_loss_protection
    volatile = [r for r in report.rows if r.write_cache and not r.power_loss_protection]
    assert all(row.lost_slots > 10 * row.cuts for row in volatile)


def test_what_is_not_covered_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "validate", "power-cuts", "--cuts", "20"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"{', '.join(power_cuts.NOT_COVERED)}.")
    assert main(["lab", "validate", "power-cuts", "--cuts", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_covered"] == list(power_cuts.NOT_COVERED)


def test_the_same_drive_gives_the_same_counts() -> None:
    assert _native.validate_power_cuts(7, 4, 5) == _native.validate_power_cuts(7, 4, 5)
    assert _native.validate_power_cuts(7, 4, 5) != _native.validate_power_cuts(8, 4, 5)


def test_the_first_failure_is_reported_with_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = _native.validate_power_cuts

    def broken(seed: int, drive: int, cuts: int) -> dict[str, object]:
        rows = real(seed, drive, cuts)
        return rows | {"violation": "cut 3: page 7 is gone"} if drive >= 2 else rows

    monkeypatch.setattr(_native, "validate_power_cuts", broken)
    assert main(["lab", "validate", "power-cuts", "--cuts", "100", "--seed", "5", "--json"]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert not document["ok"]
    assert document["failure"]["drive"] == 2
    assert "validate power-cuts --seed 5 --drive 2" in err


@pytest.mark.parametrize("words", [["--cuts", "0"], ["--seed", "-1"], ["--jobs", "0"]])
def test_bad_numbers_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "validate", "power-cuts", *words]) == 2
    assert words[0].strip("-") in capsys.readouterr().err
