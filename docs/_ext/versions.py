"""Publish the documentation of several versions side by side, in FOLDER/VERSION.

    .venv/bin/python -m docs._ext.versions site FOLDER

This program copies a site to the folder of its version and lists all versions in
FOLDER/versions.js, newest first. Every page of every version loads this list
(docs/_static/versions.js), so that old pages link to new versions. Without the list, the version
menu is disabled.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def version() -> str:
    """Return the version of writecliff in this checkout."""
    with (ROOT / "Cargo.toml").open("rb") as file:
        return str(tomllib.load(file)["workspace"]["package"]["version"])


def add(site: Path, folder: Path, name: str) -> list[str]:
    """Copy a site to `folder/name`, and list and return all versions, newest first."""
    shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(site, folder / name)
    names = [path.name for path in folder.iterdir() if _VERSION.fullmatch(path.name)]
    names.sort(key=lambda text: [int(part) for part in text.split(".")], reverse=True)
    text = f"showVersions({json.dumps(names)});\n"
    (folder / "versions.js").write_text(text, encoding="utf-8")
    return names


def main(arguments: Sequence[str]) -> int:
    """Add a site to a folder, as given on the command line."""
    site, folder = map(Path, arguments)
    print(f"{folder}: {', '.join(add(site, folder, version()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
