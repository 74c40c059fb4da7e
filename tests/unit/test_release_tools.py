"""Release tools: rejected input, and output."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
LOG = "# Changelog\n\n## 0.2.0 (unreleased)\n\n### Features\n- A thing.\n\n## 0.1.0 (2025-01-01)\n- Old.\n"


def load(name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile((TOOLS / name).read_text(encoding="utf-8"), name, "exec"), module.__dict__)
    return module


# -- licences -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT/Apache-2.0", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("MIT OR", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_licence_expressions(expression: str, allowed: bool) -> None:
    assert load("licences").is_allowed(expression) is allowed


def test_texts_of_crates_are_kept_once() -> None:
    tool = load("licences")
    crates = tool.crates()
    names = {crate["name"] for crate in crates}
    assert {"pyo3", "toml_edit", "libc"} <= names
    assert not names & {"proptest", "syn", "writecliff-ssd"}, "only what is linked"
    text = tool.document(crates)
    texts = {text_ for crate in crates for text_ in tool.texts_of(crate)}
    assert len(texts) < sum(len(tool.texts_of(crate)) for crate in crates)
    assert text.count(tool.RULE) == 2 * len(texts)
    assert all(text_ in text for text_ in texts)
    assert all(f"{crate['name']} {crate['version']}" in text for crate in crates)


# -- wheels ---------------------------------------------------------------------------------------


def wheel(folder: Path, name: str, library: bytes, missing: str = "") -> Path:
    path = folder / name
    tool = load("check-wheel")
    with zipfile.ZipFile(path, "w") as archive:
        for part in tool.NEEDED:
            if part != missing:
                file = part if part.startswith("writecliff/") else f"writecliff-1{part}"
                archive.writestr(file, library if part in tool.NATIVE else b"x")
    return path


GOOD = "writecliff-1-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"


@pytest.mark.parametrize(
    ("name", "library", "missing", "fault"),
    [
        (GOOD, b"GLIBC_2.17\0GLIBC_2.2.5", "", None),
        (GOOD, b"GLIBC_2.28", "", "needs glibc 2.28"),
        (GOOD, b"\0.debug_info\0", "", "is not stripped"),
        (GOOD, b"/" + b"home/someone/x.rs", "", "names /" + "home/someone/x.rs"),
        (GOOD, b"", "writecliff/py.typed", "no writecliff/py.typed"),
        ("writecliff-1-cp311-abi3-linux_x86_64.whl", b"", "", "its tag is not"),
    ],
)
def test_wheels(tmp_path: Path, name: str, library: bytes, missing: str, fault: str | None) -> None:
    faults = load("check-wheel").faults(wheel(tmp_path, name, library, missing))
    assert (faults == []) if fault is None else any(fault in fault_ for fault_ in faults)


# -- releases -------------------------------------------------------------------------------------


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a repository with a crate and the programs that a release calls."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.invalid")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "checkout"
    (root / "src").mkdir(parents=True)
    (root / "src/lib.rs").touch()
    (root / "Cargo.toml").write_text(
        '[workspace.package]\nversion = "0.1.0"\nedition = "2021"\n\n'
        '[package]\nname = "some"\nversion.workspace = true\nedition.workspace = true\n',
        encoding="utf-8",
    )
    (root / "CHANGELOG.md").write_text(LOG, encoding="utf-8")
    (root / ".gitignore").write_text("/target/\n/.venv/\n", encoding="utf-8")
    script(root / "tools/build-wheel", 'mkdir -p "$1" && cp some.whl "$1/"')
    script(root / "tools/try-wheel", 'echo "tried $2 $3"')
    script(root / "tools/audit", "exit 2")
    script(root / ".ci/run", "test ! -e fails")
    (root / "Makefile").write_text("test-long:\n\ttest ! -e fails-long\n", encoding="utf-8")
    script(root / ".venv/bin/python", '[ "$1" != tools/recipes ] || echo "$3" >"$2/recipe.yaml"')
    (root / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.1.0\n", encoding="utf-8")
    shutil.copy(TOOLS / "release", root / "tools/release")
    with zipfile.ZipFile(root / "some.whl", "w") as archive:
        archive.writestr("some-1.dist-info/sboms/some.json", "{}")
    subprocess.run(["cargo", "generate-lockfile", "--offline", "--quiet"], cwd=root, check=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "all")
    return root


def release(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [root / "tools/release", *arguments], capture_output=True, text=True, check=False
    )


def test_a_release_is_a_commit_a_tag_and_files(checkout: Path) -> None:
    done = release(checkout, "--url", "https://example.invalid", "0.2.0")
    assert done.returncode == 0, done.stderr
    assert "known vulnerabilities were not looked up" in done.stdout
    assert "tried bookworm trixie" in done.stdout
    assert git(checkout, "log", "-1", "--format=%s").strip() == "release: 0.2.0"
    assert "- A thing." in git(checkout, "tag", "--list", "--format=%(contents)", "v0.2.0")
    assert git(checkout, "status", "--porcelain") == ""
    log = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "(unreleased)" not in log and "\n## 0.2.0 (20" in log and "## 0.1.0 (2025-01-01)" in log
    assert 'version = "0.2.0"' in (checkout / "Cargo.lock").read_text(encoding="utf-8")
    citation = (checkout / "CITATION.cff").read_text(encoding="utf-8")
    assert citation == "cff-version: 1.2.0\nversion: 0.2.0\n"
    made = checkout / "target/dist/0.2.0"
    names = {path.name for path in made.iterdir()}
    assert names == {"some.whl", "some.json", "recipe.yaml", "SHA256SUMS"}
    assert (made / "recipe.yaml").read_text(encoding="utf-8") == "https://example.invalid\n"
    sums = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=made, check=False)
    assert sums.returncode == 0


def fail(checkout: Path, name: str) -> None:
    (checkout / ".git/info/exclude").write_text("fails*\n", encoding="utf-8")
    (checkout / name).touch()


def test_a_dry_run_leaves_everything_as_it_was(checkout: Path) -> None:
    fail(checkout, "fails")
    fail(checkout, "fails-long")
    done = release(checkout, "--dry-run", "0.2.0")
    assert done.returncode == 0, done.stderr
    assert "CHANGELOG.md" in done.stdout
    assert git(checkout, "status", "--porcelain") == "" == git(checkout, "tag")
    assert git(checkout, "log", "--format=%s").split() == ["all"]


@pytest.mark.parametrize(
    ("name", "command"), [("fails", ".ci/run"), ("fails-long", "make test-long")]
)
def test_failing_checks_leave_everything_as_it_was(checkout: Path, name: str, command: str) -> None:
    fail(checkout, name)
    done = release(checkout, "0.2.0")
    assert done.returncode == 1 and f"`{command}` failed" in done.stderr
    assert git(checkout, "status", "--porcelain") == "" == git(checkout, "tag")


@pytest.mark.parametrize(
    ("spoil", "version", "why"),
    [
        ("echo x >> src/lib.rs", "0.2.0", "the checkout has changes"),
        ("touch new", "0.2.0", "the checkout has changes"),
        ("git tag v0.2.0", "0.2.0", "0.2.0 is released already"),
        ("git tag v0.10.0", "0.9.0", "0.10.0 is released already"),
        ("sed -i 's/ (unreleased)/ (2026-01-01)/' CHANGELOG.md; git commit -qam x", "0.2.0", "no section"),
        ("sed -i '/A thing/d' CHANGELOG.md; git commit -qam x", "0.2.0", "lists nothing"),
        ("printf '#!/bin/sh\\nexit 1' > tools/audit; git commit -qam x", "0.2.0", "vulnerabilities"),
        ("true", "0.2", "is not MAJOR.MINOR.PATCH"),
        ("true", "v0.2.0", "is not MAJOR.MINOR.PATCH"),
    ],
)  # fmt: skip
def test_refusals(checkout: Path, spoil: str, version: str, why: str) -> None:
    subprocess.run(["sh", "-c", spoil], cwd=checkout, check=True)
    before = git(checkout, "status", "--porcelain"), git(checkout, "tag")
    done = release(checkout, version)
    assert done.returncode == 1 and why in done.stderr, done.stderr
    assert (git(checkout, "status", "--porcelain"), git(checkout, "tag")) == before
    assert not (checkout / "target/dist").exists()
