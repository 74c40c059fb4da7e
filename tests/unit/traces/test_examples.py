"""Captured traces that ship with writecliff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from writecliff.api import characterise_trace
from writecliff.capture.trace import read_trace
from writecliff.cli.main import main
from writecliff.errors import ConfigError
from writecliff.traces.examples import FOLDER, examples, trace_path

SIZE_MAX_BYTES = 300_000  # Maximum total size of all traces.


def test_they_are_small_and_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "examples", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["examples"]
    assert {row["name"] for row in listed} == {"cassandra", "postgres", "rocksdb", "sqlite"}
    assert sorted(Path(row["path"]) for row in listed) == sorted(FOLDER.glob("*.parquet"))
    assert sum(row["bytes"] for row in listed) < SIZE_MAX_BYTES


@pytest.mark.parametrize("name", [example.name for example in examples()])
def test_each_is_a_whole_trace_of_a_drive(name: str) -> None:
    trace = read_trace(trace_path(f"example:{name}"))
    assert trace.is_block and trace.metadata["lost_events"] == 0
    assert trace.metadata["program"] == name
    measures = characterise_trace(f"example:{name}").measures
    assert measures["ios"] == trace.rows > 1500
    assert measures["write_bytes"] > 80e6
    assert measures["operations"]["flush"]["ios"] > 500  # The data of these workloads are durable.
    assert measures["response_ms"]["write"]["count"] > 0
    # The trace contains no information about the machine that captured it.
    raw = (FOLDER / f"{name}.parquet").read_bytes()
    assert b"/tmp" not in raw and b"/home" not in raw and b"/root" not in raw


def test_another_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        characterise_trace("example:sqlit")
    assert "sqlite" in (caught.value.hint or "")
