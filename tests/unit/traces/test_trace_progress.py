"""Progress of work on a trace: fractions of the file and of replays, and their display."""

from __future__ import annotations

import gzip
import json
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from writecliff import progress
from writecliff.api import characterise_trace, convert_trace, replay_trace
from writecliff.cli.main import main
from writecliff.cli.progress import WorkView
from writecliff.cli.screen import Screen
from writecliff.progress import WorkProgress

IOS = 500_000  # I/O count that suffices for several updates.
DRIVE = "sim:sata-tlc-120"


class Seen(WorkProgress):
    """Progress by phase of the work."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = {"": []}
        self.ios = 0

    def part(self, what: str) -> None:
        self.parts[what] = []

    def done(self, share: float, *, ios: int = 0, figures: str = "") -> None:
        self.ios = ios or self.ios
        [*self.parts.values()][-1].append(share)


@cache
def msr_lines(ios: int) -> str:
    return "".join(
        f"{128_166_372_003_061_629 + 1000 * n},srv,0,Write,{n * 7919 % 20_000 * 4096},4096,9\n"
        for n in range(ios)
    )


def trace(path: Path, ios: int = IOS) -> Path:
    path.write_text(msr_lines(ios))
    return path


def rises(shares: list[float]) -> bool:
    """Return `True` if the fractions rise from a small value through more than two values."""
    return shares == sorted(shares) and len(set(shares)) > 2 and 0 < shares[0] < 0.6


def test_the_share_is_of_the_file_as_it_is_packed(tmp_path: Path) -> None:
    plain = trace(tmp_path / "a.csv")
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
    table = tmp_path / "a.parquet"
    for source, target in (
        (plain, table),
        (packed, tmp_path / "b.csv"),
        (table, tmp_path / "c.csv"),
    ):
        seen = Seen()
        convert_trace(source, target, progress=seen)
        assert rises(seen.parts[""]) and seen.parts[""][-1] > 0.8, (source, seen.parts)
        assert 0.8 * IOS < seen.ios <= IOS


def test_a_replay_reports_the_progress_of_each_part(tmp_path: Path) -> None:
    convert_trace(trace(tmp_path / "a.csv"), tmp_path / "a.parquet")
    seen = Seen()
    replayed = replay_trace(tmp_path / "a.parquet", DRIVE, progress=seen)
    assert [*seen.parts][1:] == [
        "reading the trace",
        "measuring the write volume",
        "laying out the files",
        "replaying the trace",
        "replaying the end of the trace with timing",
    ]
    for what in (
        "measuring the write volume",
        "laying out the files",
        "replaying the end of the trace with timing",
    ):
        assert rises(seen.parts[what]), (what, seen.parts[what])
        assert 0.8 < seen.parts[what][-1] <= 1.0, (what, seen.parts[what])
    assert [round(share, 1) for share in seen.parts["replaying the trace"]] == [
        0.5
    ]  # Fractions of a million I/Os.
    assert replayed.waf == replay_trace(tmp_path / "a.parquet", DRIVE).waf


def test_an_interrupt_stops_the_layout_of_a_trace(tmp_path: Path) -> None:
    """Check that an exception of the progress display, as on Ctrl-C, leaves the native module."""

    class Stop(WorkProgress):
        def __init__(self, what: str) -> None:
            self.what, self.now = what, ""

        def part(self, what: str) -> None:
            self.now = what

        def done(self, share: float, *, ios: int = 0, figures: str = "") -> None:
            if self.now == self.what:
                raise KeyboardInterrupt(share)

    convert_trace(trace(tmp_path / "a.csv"), tmp_path / "a.parquet")
    for what in ("measuring the write volume", "laying out the files", "replaying the trace"):
        with pytest.raises(KeyboardInterrupt) as stopped:
            replay_trace(tmp_path / "a.parquet", DRIVE, progress=Stop(what))
        assert 0 < stopped.value.args[0] < 0.9, what


def test_writes_that_are_replayed_are_parts_of_their_own(tmp_path: Path) -> None:
    seen = Seen()
    characterise_trace(trace(tmp_path / "a.csv", 3 * IOS), on=DRIVE, progress=seen)
    parts = [*seen.parts]
    assert parts[:3] == ["", "converting the trace for the replay", "reading the trace"]
    assert all(rises(seen.parts[what]) for what in parts[:2])
    assert parts[-1] == "replaying the trace"  # without latencies


def test_a_log_shows_the_time_remaining(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = WorkProgress(WorkView(Screen()), "measuring")
    for begin in (0.0, 0.25):  # The second file is three times as long as the first file.
        view.file(begin, 0.25 if begin == 0 else 1.0)
        for step in range(1, 11):
            now_s += 1.0 if begin == 0 else 3.0
            view.done(step / 10, ios=step * 1_000_000)
    now_s += 100
    view.part("replaying the trace")
    now_s += 200
    view.done(0.75)
    assert capsys.readouterr().err.splitlines() == [
        "[5 s] measuring: 5,000,000 I/Os, 1.0 million a second  12 %  about 35 s left",
        "[16 s] measuring: 12,000,000 I/Os, 0.8 million a second  40 %  about 24 s left",
        "[31 s] measuring: 17,000,000 I/Os, 0.5 million a second  77 %  about 9 s left",
        "[0 s] replaying the trace",
        "[3 min 20 s] replaying the trace  75 %  about 1 min 7 s left",
    ]


def test_a_terminal_has_one_line_and_quiet_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    view = WorkView(Screen(console=Console(file=StringIO())))
    with view.showing("measuring") as work:
        assert not view.render()  # Short work shows no progress.
        now_s = 10.0
        work.done(0.5, ios=20_000_000)
    shown = "[10 s] measuring: 20,000,000 I/Os, 2.0 million a second  50 %  about 10 s left"
    assert str(view.render()) == shown
    quiet = WorkProgress(WorkView(Screen(quiet=True)), "measuring")
    now_s = 100.0
    quiet.done(0.5, ios=1)
    captured = capsys.readouterr()
    assert not captured.out and not captured.err


@pytest.mark.parametrize("command", ["characterise", "convert", "replay"])
def test_progress_is_on_stderr_beside_json(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: str,
) -> None:
    monkeypatch.setattr(progress.Silence, "too_long", lambda self: True)
    first = trace(tmp_path / "a.csv")
    second = trace(tmp_path / "b.csv", 3 * IOS)
    convert_trace(first, tmp_path / "a.parquet")
    words = {
        "characterise": [first, "--against", second, "--output", tmp_path / "w.html"],
        "convert": [first, tmp_path / "b.parquet"],
        "replay": [tmp_path / "a.parquet", "--on", DRIVE, "--output", tmp_path / "r"],
    }[command]
    name = ["trace", command] if command == "convert" else [command]
    assert main([*name, *map(str, words), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    lines = captured.err.splitlines()
    shares = [int(line.split(" %")[0].split()[-1]) for line in lines if " %" in line]
    assert max(shares) >= 80 and any(" left" in line for line in lines), lines
    if command == "characterise":  # Both files count together, weighted by their bytes.
        assert shares == sorted(shares) and shares[-1] > 90
        of_first = [share for share in shares if share <= 25]
        assert of_first[-1] > 12 and 25 < shares[len(of_first)] < 50, lines
