"""Fixtures: a trace of the synthetic store, and its rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from writecliff.capture.rules import Rules, parse_rules
from writecliff.capture.trace import write_trace
from writecliff.replay.columns import FileIO, file_io
from writecliff.replay.model import ReplaySetup, Sizing, lay_out
from writecliff.replay.synthetic import RULES, synthetic_table

DRIVE = "sim:sata-tlc-120"


@pytest.fixture(scope="session")
def store_rules() -> Rules:
    return parse_rules(RULES, "store.toml")


@pytest.fixture(scope="session")
def store(store_rules: Rules) -> FileIO:
    """Create about 600 tables of 64 KiB, 40 MB in total."""
    table = synthetic_table(table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=48 << 20)
    return file_io(table, store_rules)


@pytest.fixture(scope="session")
def setup(store: FileIO) -> ReplaySetup:
    return lay_out(store, DRIVE, Sizing(fill_pct=90, fills=8), streams=8)


@pytest.fixture(scope="session")
def trace_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with a trace and its rules."""
    folder = tmp_path_factory.mktemp("trace")
    table = synthetic_table(table_bytes=64 << 10, chunk_bytes=16 << 10, logged_bytes=40 << 20)
    write_trace(folder / "store.parquet", table, {"command": ["store"], "program": "store 1.0"})
    (folder / "rules.toml").write_text(RULES)
    return folder
