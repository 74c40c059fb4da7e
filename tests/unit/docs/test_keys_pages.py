"""The pages of keys of device and workload files: what the program knows, and the guides say."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs._ext import keys_page
from docs._ext.keys_page import PAGES, page
from docs._ext.probe import Key, Unclear, keys
from writecliff.devices import read_device_file

ROOT = Path(__file__).parents[3]


DEVICE = PAGES["device"]


@pytest.fixture
def guides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the guides that the pages are made from."""
    copy = tmp_path / "docs" / "guides"
    copy.mkdir(parents=True)
    for path in (ROOT / "docs" / "guides").glob("*.md"):
        (copy / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(keys_page, "ROOT", tmp_path)
    return copy


@pytest.mark.parametrize("name", ["device", "workload"])
def test_a_page_is_what_program_and_guides_say(name: str) -> None:
    which = PAGES[name]
    written = (ROOT / "docs" / "reference" / f"{which.name}.md").read_text(encoding="utf-8")
    made = "\n".join(page(which)) + "\n"
    assert written == made, (
        f"run: python -m docs._ext.keys_page {name} > docs/reference/{which.name}.md"
    )


def test_a_key_that_no_guide_explains_is_named(guides: Path) -> None:
    path = guides / "devices.md"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "| `d` |" not in line), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"no guide says what ftl\.d means"):
        list(page(DEVICE))


def test_a_key_that_only_a_guide_knows_is_named(guides: Path) -> None:
    path = guides / "devices.md"
    row = "| `d` | 1 to 1024 |"
    text = path.read_text(encoding="utf-8")
    assert row in text
    path.write_text(text.replace(row, f"| `dd` | size | gone |\n{row}"), encoding="utf-8")
    with pytest.raises(SystemExit, match="the program does not know dd of the guides"):
        list(page(DEVICE))


def test_what_a_key_takes_is_asked_of_the_reader() -> None:
    reader = DEVICE.reader
    found = {key.path: key for key in keys([read_device_file("sata-tlc-120")[0],
                                            *keys_page.SSDS], reader)}  # fmt: skip
    for key in (
        Key(("user_capacity",), "size", True),
        Key(("flash",), "table", True),
        Key(("flash", "channels"), "whole number, 1 to 64", True),
        Key(("flash", "cell"), '`"SLC"`, `"MLC"`, `"TLC"`, `"QLC"`', True),
        Key(("flash", "read"), "list of times", True),
        Key(("flash", "bus"), "rate", True),
        Key(("flash", "multi_plane"), "flag", True),
        Key(("flash", "erase_suspend"), "time", False),
        Key(("ecc", "retry_gain"), "number, 0 to 1", False),
        Key(("thermal", "resistance"), "thermal resistance", True),
        Key(("endurance", "reserve"), "0 to 100 %", False),
        Key(("link", "interface"), "text", True),
    ):
        assert found[key.path] == key


def test_a_file_that_is_refused_cannot_be_asked_about() -> None:
    reader = DEVICE.reader
    with pytest.raises(Unclear, match="missing key 'name'"):
        keys(["user_capacity = '1 GB'"], reader)
    with pytest.raises(Unclear, match=r"no file has what these need: ftl\.gc_window"):
        keys([read_device_file("sata-tlc-120")[0]], reader)
