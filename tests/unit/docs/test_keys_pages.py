"""The pages of keys of device and workload files: what the program knows, and the guides say."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs._ext import keys_page
from docs._ext.keys_page import PAGES, meanings, read_workload, workload_page
from docs._ext.probe import Key, Unclear, keys
from writecliff import _native

ROOT = Path(__file__).parents[3]


@pytest.fixture
def guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the guide to workload files, from which the page is made."""
    copy = tmp_path / "docs" / "guides" / "workloads.md"
    copy.parent.mkdir(parents=True)
    original = ROOT / "docs" / "guides" / "workloads.md"
    copy.write_text(original.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(keys_page, "ROOT", tmp_path)
    return copy


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_generated(name: str) -> None:
    written = (ROOT / "docs" / "reference" / f"{name}-keys.md").read_text(encoding="utf-8")
    assert written == "\n".join(PAGES[name]()) + "\n", (
        f"run: python -m docs._ext.keys_page {name} > docs/reference/{name}-keys.md"
    )


def test_a_key_of_a_device_file_has_a_kind_a_default_and_a_meaning() -> None:
    drives = {
        drive: {(name, key): row for name, _, keys in sections for key, *row in keys}
        for drive, sections in _native.device_keys()
    }
    assert list(drives) == ["SSDs", "Hard disks", "Storage-class memory"]
    keys_of_ssds = drives["SSDs"]
    for key, takes, is_required, default in (
        (("", "user_capacity"), "size, 4 KiB to 1024 TiB", True, ""),
        (("flash", "channels"), "whole number, 1 to 64", True, ""),
        (("flash", "cell"), '`"SLC"`, `"MLC"`, `"TLC"`, `"QLC"`', True, ""),
        (("flash", "read"), "list of times", True, ""),
        (("flash", "bus"), "rate above zero", True, ""),
        (("flash", "multi_plane"), "flag", True, ""),
        (("flash", "erase_suspend"), "time", False, ""),
        (("controller", "read_command_time"), "time", False, "`command_time`"),
        (("ecc", "retry_gain"), "number, 0 to 1", False, "0.5"),
        (("recovery", "method"), '`"journal"`, `"scan"`', False, '`"journal"`'),
        (("thermal", "resistance"), "thermal resistance above zero", True, ""),
        (("endurance", "reserve"), "0 to 100 %", False, "10 %"),
        (("power", "link"), "power", False, "0 W"),
        (("link", "interface"), "text", True, ""),
    ):
        assert keys_of_ssds[key][:3] == [takes, is_required, default], key
    meanings_of_keys = [row[3] for rows in drives.values() for row in rows.values()]
    assert all(meaning and "\n" not in meaning for meaning in meanings_of_keys)


@pytest.mark.parametrize(
    "guide_name",
    ["devices.md", "device-failures.md", "mapping-cache.md", "storage-class-memory.md"],
)
def test_guides_name_only_keys_that_the_program_knows(guide_name: str) -> None:
    known = {
        key
        for _, sections in _native.device_keys()
        for section, _, rows in sections
        for key in (section, *(row[0] for row in rows))
    }
    rows = [row for row in meanings(guide_name) if row.heading.startswith("`[")]
    assert {row.key for row in rows} <= known


def test_a_key_that_no_guide_explains_is_named(guide: Path) -> None:
    lines = guide.read_text(encoding="utf-8").splitlines(keepends=True)
    guide.write_text("".join(line for line in lines if "| `seed` |" not in line), encoding="utf-8")
    with pytest.raises(SystemExit, match="the guide does not explain seed"):
        list(workload_page())


def test_a_key_that_only_a_guide_knows_is_named(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| `seed` |"))
    guide.write_text(text.replace(row, f"{row}\n{row.replace('`seed`', '`dd`')}"), encoding="utf-8")
    with pytest.raises(SystemExit, match="the guide explains unknown keys: dd"):
        list(workload_page())


def test_what_a_key_takes_is_asked_of_the_reader() -> None:
    known_keys = {key.path: key for key in keys(keys_page.WORKLOADS, read_workload)}
    for key in (
        Key(("name",), "text", True),
        Key(("job", "mix", "random_read"), "0 to 100 %", True),
    ):
        assert known_keys[key.path] == key


def test_a_file_that_is_refused_cannot_be_asked_about() -> None:
    with pytest.raises(Unclear, match="a file is refused"):
        keys(["precondition = 1"], read_workload)
