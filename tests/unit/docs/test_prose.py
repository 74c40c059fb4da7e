"""`tools/prose`: lists of messages, grammar checks and random sentences."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

ROOT = Path(__file__).parents[3]


def _load() -> ModuleType:
    """Load `tools/prose`, which keeps what it has collected."""
    loader = SourceFileLoader("prose", str(ROOT / "tools" / "prose"))
    module = module_from_spec(cast(ModuleSpec, spec_from_loader("prose", loader)))
    sys.modules["prose"] = module  # for its `NamedTuple`
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    return _load()


@pytest.fixture(scope="module")
def prose_of_some_files() -> ModuleType:
    """Load `tools/prose` for a tenth of the project's files, because reading all takes seconds."""
    module = _load()
    files = module.files
    module.files = lambda *patterns: files(*patterns)[::10]  # type: ignore[attr-defined]
    return module


@pytest.fixture(scope="module")
def sections(prose: ModuleType) -> dict[str, str]:
    """Return the list of messages by kind."""
    with redirect_stdout(StringIO()) as output:
        prose.main(["messages"])
    kinds = re.split(r"^## (\w+) .*$", output.getvalue(), flags=re.MULTILINE)
    return dict(zip(kinds[1::2], kinds[2::2], strict=True))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Error", "invalid size '{text}' (python/writecliff/units.py:"),
        ("Error", "the drive is read-only (crates/contents/src/lib.rs:"),
        ("Error", "unknown format '{name}' (crates/traces/src/reader.rs:"),
        ("Hint", "use the unit k, m, g, t or p (python/writecliff/workload/fiojob/values.py:"),
        (
            "Hint",
            "specify a time with its unit, such as 30 s, 1.5 ms or 2 min (python/writecliff/units.py:",
        ),
        (
            "Hint",
            "choose another format with --format, or use --columns (crates/traces/src/reader.rs:",
        ),
        ("Warning", "in fio, the {zones.count} segments are evenly spaced (python/"),
        ("Progress", "converting the trace for the replay (python/writecliff/api/block_traces.py:"),
    ],
)
def test_a_message_of_each_kind_is_listed(
    sections: dict[str, str], kind: str, message: str
) -> None:
    assert f"\n- {message}" in sections[kind]


def test_panics_and_docstrings_are_no_messages(sections: dict[str, str]) -> None:
    listed = "".join(sections.values())
    assert "crates/ssd/src/device_file" in listed
    assert "removing comment lines keeps the TOML valid" not in listed
    assert "Raises:" not in listed
    assert "called once per I/O" not in listed  # reason of an attribute
    assert "revolutions per minute" not in listed  # description of a key
    assert "io_u error on file" not in listed  # regular expression


def test_mistakes_of_grammar_are_reported(tmp_path: Path) -> None:
    pytest.importorskip("harper", reason="harper-py is not installed: make setup")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "page.md").write_text(
        "# Page\n\nThe drive has an buffer, of which `x` is a a part.\n"
    )
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "prose", tmp_path / "tools")
    for name in ("cli", "lab"):
        (folder / "reference").mkdir(exist_ok=True)
        (folder / "reference" / f"{name}.md").write_text("")
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    check = subprocess.run(
        [sys.executable, str(tmp_path / "tools" / "prose"), "check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert check.returncode == 1
    assert re.findall(r"page\.md:3: (\w+):", check.stdout) == ["AnA", "RepeatedWords"]


def test_a_sample_has_twenty_sentences_of_each_kind(
    prose_of_some_files: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    prose = prose_of_some_files
    prose.main(["sample", "--seed", "7"])
    sample = capsys.readouterr().out
    assert re.findall(r"^## (\w+) \((\d+)\)$", sample, re.MULTILINE) == [
        (kind, "20") for kind in ("Page", "Docstring", "Error", "Help", "Comment")
    ]
    prose.main(["sample", "--seed", "7"])
    assert sample == capsys.readouterr().out
    prose.main(["sample", "--seed", "8"])
    assert sample != capsys.readouterr().out


def test_sentences_are_collected_in_the_order_of_the_files(
    prose_of_some_files: ModuleType,
) -> None:
    """So that equal files and an equal seed give an equal sample."""
    for pools in prose_of_some_files.sentence_pools().values():
        for pool in pools:
            names = [text.file for text in pool]
            for suffix in (".py", ".rs"):
                of_language = [name for name in names if name.endswith(suffix)]
                assert of_language == sorted(of_language)
