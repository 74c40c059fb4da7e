"""Rules of the house that no linter checks: sizes, headers, and what must not be in the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES = 500
FUNCTION_LINES = 70
COLUMNS = 100
THIS = str(Path(__file__).relative_to(ROOT))


def _files(*suffixes: str) -> list[str]:
    """The files of the repository, or of the source archive if it is no checkout."""
    if (ROOT / ".git").exists():
        said = subprocess.run(
            ["git", "ls-files", "--cached"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        names = said.stdout.splitlines()
    else:
        places = ("crates", "docs", "python", "tests", "tools")
        names = [str(p.relative_to(ROOT)) for place in places for p in (ROOT / place).rglob("*")]
    found = [n for n in names if n.endswith(suffixes) and (ROOT / n).is_file()]
    assert found, f"no files of {suffixes}: this test looks in the wrong place"
    return found


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


PYTHON = _files(".py", ".pyi")
RUST = _files(".rs")
PROSE = _files(".md", ".toml", ".j2", ".css")


def test_no_file_is_over_long() -> None:
    lengths = {name: len(_text(name).splitlines()) for name in PYTHON + RUST + PROSE}
    over = {n: lines for n, lines in lengths.items() if lines > FILE_LINES}
    assert over == {}


def test_no_line_is_over_long() -> None:
    over = [
        f"{name}:{number}"
        for name in PYTHON + RUST
        if not name.startswith("tests/")  # snapshots hold lines as printed
        for number, line in enumerate(_text(name).splitlines(), 1)
        if len(line) > COLUMNS and not (name.endswith("tests.rs") and '"' in line)
    ]
    assert over == []


def _signature_and_prose(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines before the first statement: parameters and docstring are documentation."""
    documented = ast.get_docstring(node) is not None
    if documented and len(node.body) == 1:
        return 0
    return node.body[1 if documented else 0].lineno - node.lineno


def test_no_python_function_is_over_long() -> None:
    over = [
        f"{name}: {node.name}"
        for name in PYTHON
        for node in ast.walk(ast.parse(_text(name)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 - _signature_and_prose(node) > FUNCTION_LINES
    ]
    assert over == []


def test_no_rust_function_is_over_long() -> None:
    """rustfmt puts a function's closing brace below its `fn`, which is all that this needs."""
    over, functions = [], 0
    for name in RUST:
        if name.endswith("tests.rs"):
            continue  # tables of cases
        lines = _text(name).splitlines()
        for start, line in enumerate(lines):
            head = re.match(r"( *)(?:pub(?:\([a-z]+\))? )?(?:const |unsafe )*fn (\w+)", line)
            if head is None:
                continue
            functions += 1
            ends = range(start, len(lines))
            if line.rstrip().endswith(("}", ";")):
                continue
            end = next(i for i in ends if lines[i].startswith((f"{head[1]}}}", f"{head[1]});")))
            if end - start + 1 > FUNCTION_LINES:
                over.append(f"{name}: {head[2]}")
    assert functions > 100
    assert over == []


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a path of somebody's machine", r"(?<![\w.~])/(?:work|root|home)/"),
        ("something left to do", r"\b(?:TODO|FIXME|XXX)\b|\b(?:todo|unimplemented)!"),
    ],
)
def test_nothing_holds(what: str, pattern: str) -> None:
    names = [n for n in _files("") if n != THIS and not n.endswith((".gz", ".png", ".parquet"))]
    found = [
        f"{name}:{number}"
        for name in names
        for number, line in enumerate(_text(name).splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert found == [], what


def test_lock_files_hold_no_address_to_download_from() -> None:
    identity = "registry+https://github.com/rust-lang/crates.io-index"
    sources = set(re.findall(r'^source = "(.*)"$', _text("Cargo.lock"), re.M))
    assert sources == {identity}
    for name in ("Cargo.lock", "requirements.lock"):
        assert "://" not in _text(name).replace(identity, "")
        assert "index-url" not in _text(name)


def test_every_file_says_what_it_is() -> None:
    silent = [n for n in PYTHON if not ast.get_docstring(ast.parse(_text(n)))]
    silent += [n for n in RUST if not _text(n).startswith("//!")]
    assert silent == []


def _skips_without_reason(tree: ast.AST) -> list[int]:
    """Lines of pytest.skip() and mark.skip / skipif / xfail that do not say why."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = {keyword.arg for keyword in node.keywords}
            says = bool(node.args) if name.endswith(".skip") else False
            if re.search(r"\bpytest\.(mark\.)?(skip|skipif|xfail)$", name):
                found += [] if says or "reason" in keywords else [node.lineno]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bare = (ast.unparse(d) for d in node.decorator_list if not isinstance(d, ast.Call))
            found += [node.lineno for d in bare if re.search(r"mark\.(skip|skipif|xfail)$", d)]
    return found


def test_no_test_is_skipped_without_a_reason() -> None:
    silent = [(n, line) for n in PYTHON for line in _skips_without_reason(ast.parse(_text(n)))]
    assert silent == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("pytest.skip()", [1]),
        ("pytest.skip('no fio here')", []),
        ("pytest.mark.skipif(True)", [1]),
        ("pytest.mark.skipif(True, reason='no fio here')", []),
        ("@pytest.mark.skip\ndef test_it(): ...", [2]),
    ],
)
def test_a_skip_without_a_reason_is_seen(code: str, found: list[int]) -> None:
    assert _skips_without_reason(ast.parse(code)) == found
