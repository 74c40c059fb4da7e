"""Tests of the package recipes, the citation file and the GitHub Action."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs._ext.versions import version
from tests.support.small_drive import write_small_drive

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "recipes"))
URL = "https://example.invalid/writecliff"


def filled(folder: Path, url: str = "") -> dict[str, str]:
    archive = folder / f"writecliff-{version()}.tar.gz"
    archive.write_bytes(b"archive")
    (folder / f"writecliff-{version()}-any.whl").touch()
    paths = TOOL["fill"](folder, url)
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


@pytest.mark.parametrize("url", ["", URL])
def test_recipes_name_the_files_of_the_release(tmp_path: Path, url: str) -> None:
    recipes = filled(tmp_path, url)
    archive = f"writecliff-{version()}.tar.gz"
    digest = hashlib.sha256(b"archive").hexdigest()
    conda = yaml.safe_load(recipes["recipe.yaml"])
    assert conda["package"]["version"] == version()
    assert conda["source"] == {
        "url" if url else "path": f"{url}/{archive}" if url else archive,
        "sha256": digest,
    }
    formula = recipes["writecliff.rb"]
    assert f'version "{version()}"' in formula and f'sha256 "{digest}"' in formula
    assert f'url "{url or "file://#{__dir__}"}/{archive}"' in formula
    assert [name for name, text in recipes.items() if re.search(r"@\w+@", text)] == []


def test_recipes_require_what_the_package_requires(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    conda = yaml.safe_load(filled(tmp_path)["recipe.yaml"])["requirements"]["run"]
    names = {re.split(r"[<>=]", text)[0] for text in project["dependencies"]}
    pypi_names = {conda_name: name for name, conda_name in TOOL["CONDA"].items()}
    assert {pypi_names.get(text.split()[0], text.split()[0]) for text in conda} == names | {
        "python"
    }
    assert f"python {project['requires-python']}" in conda


def test_a_folder_without_a_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no wheel of writecliff"):
        TOOL["fill"](tmp_path)


def test_the_citation_has_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == version()


# -- the action -----------------------------------------------------------------------------------


def steps() -> dict[str, Any]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return {step["id"]: step for step in action["runs"]["steps"]}


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step in `folder`, as a GitHub runner would."""
    step = steps()[name]
    assert step["env"].keys() == inputs.keys()
    environment = {
        **os.environ, **inputs, "RUNNER_TEMP": str(folder), "GITHUB_REPOSITORY": "a/b",
        "GITHUB_OUTPUT": str(folder / "outputs"), "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "WRITECLIFF_CACHE": str(folder / "cache"),
    }  # fmt: skip
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_action_reports_a_missed_limit(tmp_path: Path) -> None:
    (tmp_path / "writecliff/bin").mkdir(parents=True)
    (tmp_path / "writecliff/bin/writecliff").symlink_to(
        Path(sys.executable).with_name("writecliff")
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gh").write_text('#!/bin/sh\necho "$@"; cat "$7"\n', encoding="utf-8")
    (tmp_path / "bin/gh").chmod(0o755)
    drive = write_small_drive(tmp_path)
    (tmp_path / "a load.toml").write_text('name = "load"\n[[job]]\nios = 1000\n', encoding="utf-8")
    done = run_step(
        "run", tmp_path, EXPECT="iops >= 1\n\niops <= 2\n", BASELINE="",
        COMMAND=f"run 'a load.toml' --on sim:{drive} --quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = dict(
        line.split("=", 1) for line in (tmp_path / "outputs").read_text("utf-8").splitlines()
    )
    assert outputs["exit-code"] == "3" and Path(outputs["report"]).is_file()
    comment = run_step("comment", tmp_path, GH_TOKEN="", PAGE=f"{URL}/1", PULL_REQUEST="7")
    assert comment.returncode == 0, comment.stderr
    assert comment.stdout.startswith("pr comment 7 --repo a/b --body-file ")
    assert "**writecliff missed a limit or got worse**" in comment.stdout
    assert f"[The page]({URL}/1)" in comment.stdout and "iops <= 2" in comment.stdout
    assert run_step("outcome", tmp_path, EXIT_CODE=outputs["exit-code"]).returncode == 3
