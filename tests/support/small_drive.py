"""Simulated drive that saturates quickly: the shipped SATA drive, scaled down."""

from __future__ import annotations

from pathlib import Path

from writecliff.devices import FOLDER

CHANGES = {
    'user_capacity = "120 GB"': 'user_capacity = "960 MB"',
    "blocks_per_plane = 1366": "blocks_per_plane = 183",
    "pages_per_block = 384": "pages_per_block = 24",
}


def write_small_drive(folder: Path, **more: str) -> Path:
    """Write the device file and return its path; `more` adds lines `key="value"`."""
    text = (FOLDER / "sata-tlc-120.toml").read_text()
    for old, new in CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    for key, value in more.items():
        lines = [line for line in text.splitlines() if line.startswith(f"{key} = ")]
        assert len(lines) == 1, key
        text = text.replace(lines[0], f"{key} = {value}")
    path = folder / "small.toml"
    path.write_text(text)
    return path
