"""Pages of device and workload keys, and the keys that guides name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs._ext.keys_page import PAGES
from writecliff import _native

ROOT = Path(__file__).parents[3]


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


def test_a_key_of_a_workload_file_has_a_kind_a_default_and_a_meaning() -> None:
    tables = _native.workload_keys()
    keys = {(table, key): row for table, _, rows in tables for key, *row in rows}
    for key, takes, is_required, default in (
        (("", "name"), "text", True, ""),
        (("", "seed"), "whole number, from 0", False, "1"),
        (("", "interval"), "time above zero", False, "1 s"),
        (("[[step]]", "until"), '`"steady"`', False, ""),
        (("[[step]]", "max_rounds"), "whole number, 5 to 1,000,000", False, "25"),
        (("[[job]]", "name"), "text", False, '`"job"`'),
        (("[[job]]", "pattern"), '`"random"`, `"sequential"`', False, '`"random"`'),
        (("[[job]]", "range"), "size or 0 to 100 %", False, "to the end"),
        (("[[job]]", "volume"), "size or 0 to 1,000,000 %", False, ""),
        (("[[job]]", "rate"), '`"1000 IOPS"` or `"200 MB/s"`', False, "unlimited"),
        (("[[job]]", "queue_depth"), "whole number, 1 to 65,536", False, "1"),
        (("[[job]]", "ios"), "whole number, from 1", False, ""),
        (("[[job]]", "block_sizes"), "tables", False, ""),
        (("[job.mix]", "random_read"), "0 to 100 %", False, "0 %"),
        (("[[job.block_sizes]]", "size"), "size", True, ""),
        (("[job.addresses]", "blocks"), "list of whole numbers, from 0", False, ""),
        (("[[job.addresses.zones]]", "access"), "0 to 100 %", True, ""),
    ):
        assert keys[key][:3] == [takes, is_required, default], key
    assert all(row[3] and "\n" not in row[3] for row in keys.values())


@pytest.mark.parametrize(
    "guide_name",
    ["devices.md", "device-failures.md", "mapping-cache.md", "storage-class-memory.md"],
)
def test_guides_name_only_keys_that_the_program_knows(guide_name: str) -> None:
    documented_keys = {
        key
        for _, sections in _native.device_keys()
        for section, _, rows in sections
        for key in (section, *(row[0] for row in rows))
    }
    text = (ROOT / "docs" / "guides" / guide_name).read_text(encoding="utf-8")
    sections = [part for part in re.split(r"(?m)^##+ ", text) if part.startswith("`[")]
    tables = re.findall(r"(?m)^\| key \|.*\n((?:\|.*\n)+)", "\n".join(sections))
    cells = re.findall(r"(?m)^\| ([^|]*) \|", "".join(tables))
    named = re.findall(r"`(?:\[\[)?(?:\w+\.)?(\w+)(?:\]\])?`", "\n".join(cells))
    assert named and set(named) <= documented_keys
