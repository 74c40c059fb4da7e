"""Run the code blocks of a documentation page, in order, in one folder.

`sh` blocks run in a shell with this environment's program; `python` blocks share a namespace.
docs/_ext/fences.py explains the words after a block's language. sybil and similar tools turn each
block into a test, which pytest-xdist distributes over processes, but the blocks of a page depend on
each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from docs._ext.fences import Fence, fences

ROOT = Path(__file__).parents[2]
WORDS = {"not-run", "exit", "file", "output"}
_BINARIES = Path(sys.executable).parent


class ExampleError(AssertionError):
    """Error: a block does not behave as its page says."""


class Examples:
    """A folder where page blocks run; `replaced` maps text of blocks to shorter workloads."""

    def __init__(self, folder: Path, replaced: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._cwd = folder
        self._replaced = replaced or {}
        self._python = ""
        self._printed = ""

    def run(self, page: Path) -> int:
        """Run all blocks of a page and return the number of blocks run."""
        return self.run_text(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))

    def run_text(self, text: str, name: str) -> int:
        """Run all blocks in the text of a page and return the number of blocks run."""
        count = 0
        for fence in fences(text):
            where = f"{name}:{fence.line}"
            if unknown := fence.words.keys() - WORDS:
                raise ExampleError(f"{where}: unknown words {sorted(unknown)}")
            count += self._run_block(fence, where)
        return count

    def _run_block(self, fence: Fence, where: str) -> int:
        if name := fence.words.get("file"):
            (self._cwd / name).write_text(fence.body, encoding="utf-8")
        elif "output" in fence.words:
            self._compare(fence, where)
        elif fence.language in ("sh", "python") and "not-run" not in fence.words:
            shell = self._shell if fence.language == "sh" else self._program
            self._execute(shell(self._shorter(fence.body)), int(fence.words.get("exit", 0)), where)
            return 1
        return 0

    def _shorter(self, text: str) -> str:
        for old, new in self._replaced.items():
            text = text.replace(old, new)
        return text

    def _shell(self, text: str) -> list[str]:
        """Return a shell block's command; the next block starts in its working directory."""
        keep = f'code=$?; pwd >"{self.folder}/.cwd"; exit $code'
        return ["bash", "-e", "-c", f"trap '{keep}' EXIT\n{text}"]

    def _program(self, text: str) -> list[str]:
        """Return a command that runs all Python blocks so far and prints the last output."""
        hush = "import contextlib as _c, io as _i\nwith _c.redirect_stdout(_i.StringIO()):\n"
        before = f"{hush}    exec({self._python!r})\n" if self._python else ""
        self._python += text
        return [sys.executable, "-c", before + text]

    def _execute(self, words: list[str], code: int, where: str) -> None:
        environment = {
            **os.environ,
            "PATH": f"{_BINARIES}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "python"),
            "WRITECLIFF_CACHE": str(self.folder / ".cache"),
            "COLUMNS": "240",
        }
        done = subprocess.run(
            words, cwd=self._cwd, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != code:
            output = f"{done.stdout[-1500:]}{done.stderr[-1500:]}"
            raise ExampleError(f"{where}: exit code {done.returncode}, not {code}\n{output}")
        if (cwd := self.folder / ".cwd").exists():
            self._cwd = Path(cwd.read_text(encoding="utf-8").strip())
        self._printed = done.stdout

    def _compare(self, fence: Fence, where: str) -> None:
        """Check that the page's lines are printed in order, possibly with others between."""
        printed = [" ".join(line.split()) for line in self._printed.splitlines()]
        at = 0
        for line in fence.body.splitlines():
            wanted = " ".join(line.split())
            if wanted not in printed[at:]:
                raise ExampleError(f"{where}: not printed: {line}\n{self._printed}")
            at = printed.index(wanted, at) + 1
