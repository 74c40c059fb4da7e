"""Rule files: meaning, errors, and equal results for tables and individual rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from writecliff.capture.rules import Rules, load_rules, parse_rules, presets, rules_of
from writecliff.capture.trace import COLUMNS, Trace
from writecliff.errors import ConfigError

MIB = 1 << 20


def _table(*rows: dict[str, object]) -> pa.Table:
    """Build a table of writes, by default of one byte at offset 0."""
    full = [
        {
            "time_ns": number,
            "op": "write",
            "file": number,
            "path": "data/x",
            "offset_bytes": 0,
            "length_bytes": 1,
            "thread": "main",
            "process": "db",
            "hint": None,
            **row,
        }
        for number, row in enumerate(rows)
    ]
    return pa.table(
        {n: pa.array([row[n] for row in full], type=kind) for n, kind in COLUMNS.items()}
    )


TEXT = """
name = "mine"
default = 9

[[rule]]
path = "*/log/*"
stream = 1
name = "log"

[[rule]]
thread = "compact*"
max_size = "1 MiB"
stream = 2

[[rule]]
thread = "compact*"
stream = 3

[[rule]]
hint = "long"
process = "db"
stream = 4
"""


def _stream(rules: Rules, **row: object) -> int:
    return int(rules.assign(_table(row))[0])


def test_the_first_rule_that_holds_decides() -> None:
    rules = parse_rules(TEXT, "mine.toml")
    table = _table(
        {"path": "log/1", "thread": "compact-1"},
        {"path": "a/log/1"},
        {"path": "catalog/1"},
        {"thread": "compact-1", "length_bytes": MIB},
        {"thread": "compact-1", "length_bytes": MIB + 1},
        {"hint": 4},
        {"hint": 4, "process": "other"},
        {"hint": 0},
    )
    assert rules.assign(table).tolist() == [1, 1, 9, 2, 3, 4, 9, 9]
    assert rules.streams == {
        1: "log",
        2: "stream 2",
        3: "stream 3",
        4: "stream 4",
        9: "everything else",
    }


def test_the_size_is_the_largest_that_the_file_reaches() -> None:
    rules = parse_rules(TEXT, "mine.toml")
    early = {"file": 0, "thread": "compact-1", "length_bytes": 10}
    late = {"file": 0, "thread": "compact-2", "offset_bytes": 2 * MIB}
    other = {"file": 1, "thread": "compact-1", "length_bytes": 10}
    assert rules.assign(_table(early, late, other)).tolist() == [3, 3, 2]


def test_a_table_gets_what_each_row_gets_alone() -> None:
    rules = parse_rules(TEXT, "mine.toml")
    rows = [
        {"path": path, "thread": thread, "hint": hint, "process": process}
        for path in ("log/a", "x/log/b", "base")
        for thread in ("main", "compact-7")
        for hint in (None, 0, 4)
        for process in ("db", "shell")
    ]
    alone = [int(rules.assign(_table(row))[0]) for row in rows]
    assert rules.assign(_table(*rows)).tolist() == alone
    assert len(set(alone)) == 4


def test_no_rows_no_streams() -> None:
    assert parse_rules(TEXT, "mine.toml").assign(_table()).tolist() == []


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "r.toml contains no rules", "add a [[rule]] table for each rule"),
        ("rule = 3", "r.toml contains no rules", "add a [[rule]] table for each rule"),
        ("[[rule]]\nstream = 1\n\n[[rule]]\npth = 'x'\nstream = 1",
         "r.toml:4: rule 2: unknown key 'pth'", "did you mean 'path'?"),
        ("[[rule]]\npath = '*'", "r.toml:1: rule 1: 'stream' is missing", "add the stream number (0 is the default stream)"),
        ("[[rule]]\nstream = 65536", "r.toml:1: rule 1: stream is 65536, which is not a valid stream", "use a number from 0 to 65535"),
        ("[[rule]]\nstream = true", "r.toml:1: rule 1: stream is True, which is not a valid stream", "use a number from 0 to 65535"),
        ("[[rule]]\nstream = 1\nhint = 'shrot'", "r.toml:1: rule 1: unknown hint 'shrot'", "did you mean 'short'?"),
        ("[[rule]]\nstream = 1\nhint = 6", "r.toml:1: rule 1: hint is 6, which is not a write hint",
         "use one of 0 not set, 1 none, 2 short, 3 medium, 4 long, 5 extreme"),
        ("[[rule]]\nstream = 1\nmin_size = '3 MBit'", "r.toml:1: rule 1: min_size: invalid size '3 MBit'",
         'did you mean "3 MB"?'),
        ("[[rule]]\nstream = 1\nmin_size = 3\nmax_size = 2", "r.toml:1: rule 1: min_size is greater than max_size", None),
        ("[[rule]]\nstream = 1\npath = 3", "r.toml:1: rule 1: path is 3, which is not a glob", 'specify a glob, for example "*/pg_wal/*"'),
        ("defualt = 1\n[[rule]]\nstream = 1", "r.toml: unknown key 'defualt'", "did you mean 'default'?"),
        ("[[rule]\n", "r.toml: expected ']]' at the end of an array declaration (at line 1, column 7)", None),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_rule(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rules(text, "r.toml")
    assert (str(caught.value), caught.value.hint) == (message, hint)


def test_presets_by_name(tmp_path: Path) -> None:
    assert presets() == ["cassandra", "postgres", "rocksdb-native", "rocksdb-tuned"]
    for name in presets():
        assert load_rules(name).name == name
    with pytest.raises(ConfigError) as caught:
        load_rules("casandra")
    assert caught.value.hint == "did you mean 'cassandra'?"
    with pytest.raises(ConfigError, match="no such file"):
        load_rules(tmp_path / "absent.toml")


def test_the_preset_for_cassandra() -> None:
    rules = load_rules("cassandra")
    log = "commitlog/CommitLog-7-1.log"
    data = "data/bench/kv-1/nb-1-big-Data.db"
    system = "data/system_schema/tables-2/nb-1-big-Data.db"

    def stream(path: str, thread: str, size: int = 1) -> int:
        return _stream(rules, path=path, thread=thread, process="java", length_bytes=size)

    assert stream(log, "COMMIT-LOG-WRIT") == 1
    assert stream(data, "MemtableFlushWr") == 2
    assert stream(data, "PerDiskMemtable") == 2
    assert [stream(data, "CompactionExecu", s * MIB) for s in (32, 33, 128, 129)] == [3, 4, 4, 5]
    assert stream(system, "CompactionExecu") == 0
    assert stream("saved_caches/x", "CompactionExecu") == 0


def test_the_presets_for_rocksdb_and_postgres() -> None:
    native, tuned = load_rules("rocksdb-native"), load_rules("rocksdb-tuned")
    hints = [None, 2, 3, 4, 5]
    assert [_stream(native, path="1.sst", thread="rocksdb:low", hint=h) for h in hints] == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert [_stream(tuned, path="1.sst", thread="rocksdb:low", hint=h) for h in hints] == [
        0,
        1,
        3,
        3,
        4,
    ]
    assert _stream(tuned, path="1.sst", thread="rocksdb:high", hint=3) == 2
    postgres = load_rules("postgres")
    paths = ("pg_wal/0001", "base/5/16384", "base/pgsql_tmp/t1", "global/1262", "pg_xact/0000")
    assert [_stream(postgres, path=p, thread="postgres", process="postgres") for p in paths] == [
        1,
        2,
        3,
        2,
        0,
    ]


def test_a_trace_has_rules_of_its_own() -> None:
    def of(hints: list[int | None], program: str) -> Rules | None:
        table = pa.table({"hint": pa.array(hints, pa.int8())})
        return rules_of(Trace(table, {"program": program}))

    hinted = of([None, 5, 2, 0], "anything")
    assert hinted is not None
    assert [(rule.hint, rule.stream) for rule in hinted.rules] == [(2, 1), (5, 2)]
    by_program = of([None, 1], "PostgreSQL 15.1")
    assert by_program is not None and by_program.name == "postgres"
    assert of([None], "cp") is None
