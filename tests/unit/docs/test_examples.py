"""The code blocks of tutorial and guides do what their pages say."""

from __future__ import annotations

from pathlib import Path

from tests.support.doc_examples import ROOT, Examples

DOCS = ROOT / "docs"
TUTORIAL = [DOCS / "tutorial" / f"{name}.md" for name in ("install", "write-cliff", "load", "answer")]


def test_the_tutorial_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    examples = Examples(tmp_path)
    assert [examples.run(page) > 0 for page in TUTORIAL] == [True] * len(TUTORIAL)
