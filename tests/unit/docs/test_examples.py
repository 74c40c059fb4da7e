"""Code blocks of the tutorial and guides: they run as described, and their options exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from docs._ext.fences import Fence, fences, with_captions
from tests.support.doc_examples import ROOT, ExampleError, Examples
from tests.support.small_drive import write_small_drive
from writecliff.cli.commands import build_app

DOCS = ROOT / "docs"
TUTORIAL = [
    DOCS / "tutorial" / f"{name}.md" for name in ("install", "write-cliff", "load", "answer")
]
GUIDES = sorted((DOCS / "guides").glob("*.md"))
# Guides with a separate test that checks the results of their blocks in more detail.
OWN_TESTS = {
    "data-sheet.md": "test_guide_data_sheet.py",
    "four-questions.md": "test_guide_questions.py",
    "python.md": "test_guide_python.py",
}
LANGUAGES = {"sh", "python", "toml", "yaml", "text", "ini", "csv"}


def _runs(fence: Fence) -> bool:
    return fence.language in ("sh", "python") and "not-run" not in fence.words


RUN_HERE = [
    page
    for page in GUIDES
    if page.name not in OWN_TESTS and any(map(_runs, fences(page.read_text(encoding="utf-8"))))
]


# The last page of the tutorial, with five sweep settings and two seeds, takes as long as all other
# pages together.
@pytest.mark.parametrize(
    "pages",
    [TUTORIAL[:3], pytest.param(TUTORIAL, marks=pytest.mark.long)],
    ids=["to its last page", "to its end"],
)
def test_the_tutorial_from_its_first_line(pages: list[Path], tmp_path: Path) -> None:
    examples = Examples(tmp_path)
    assert [examples.run(page) > 0 for page in pages] == [True] * len(pages)


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.stem)
def test_a_guide(page: Path, tmp_path: Path) -> None:
    """Run the guide on a 960 MB drive instead of drives of 120 GB or more, without comparisons."""
    small = write_small_drive(tmp_path)
    shorter = {
        "synthesise example:cassandra --on sim:nvme-tlc-960": "synthesise example:cassandra",
        "workload.toml --on sim:nvme-tlc-960": f"workload.toml --on sim:{small}",
        "oltp-4k --on sim:pm9a3-1920": f"oltp-4k --on sim:{small}",  # 5 s of pilots
        "sim:sata-tlc-120": f"sim:{small}",
        '"sata-tlc-120"': f'"{small}"',
    }
    assert Examples(tmp_path, shorter).run(page) > 0


@pytest.mark.long
def test_the_guide_to_traces_on_its_own_drives(tmp_path: Path) -> None:
    assert Examples(tmp_path).run(DOCS / "guides" / "traces.md") > 0


def test_enough_guides_have_examples_that_run() -> None:
    assert len(RUN_HERE) >= 7
    for name, test in OWN_TESTS.items():
        assert f'"{name}"' in (Path(__file__).parent / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*TUTORIAL, *GUIDES], ids=lambda page: page.stem)
def test_every_block_has_a_language_and_every_one_that_does_not_run_a_reason(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = fences(text)
    assert {fence.language for fence in blocks if fence.language[:1] != "{"} <= LANGUAGES
    assert len(blocks) * 2 == len(re.findall(r"^ *```", text, re.M))
    for fence in blocks:
        assert fence.words.get("not-run", "reason"), f"{page.name}:{fence.line}"
    for line in re.findall(r"(?:\n\n|\A)    (?! |[-*] ).*", text):
        pytest.fail(f"{page.name}: write an indented block as a fence: {line.strip()}")


def _commands() -> list[str]:
    """Return every writecliff command line in tutorial, guides and README, without redirections."""
    commands: dict[str, None] = {}
    for page in [*TUTORIAL, *GUIDES, ROOT / "README.md"]:
        for fence in fences(page.read_text(encoding="utf-8")):
            if fence.language in ("sh", ""):
                for line in re.sub(r" *\\\n *", " ", fence.body).splitlines():
                    if (words := line.strip()).startswith("writecliff "):
                        commands[re.split(r" [>|&] ?", words)[0]] = None
    return [line for line in commands if line.count('"') % 2 == 0]


@pytest.mark.parametrize("line", _commands())
def test_every_command_line_is_one_of_the_program(line: str) -> None:
    """Check lines that are not run as well, so that a removed option is found."""
    words = shlex.split(line, comments=True)[1:]
    app = build_app()
    _, bound, unused, *_ = app.parse_known_args(words)
    assert bound is not None
    assert [word for word in unused if word.startswith("-")] == []


def test_an_option_that_there_is_not_is_found() -> None:
    _, _, unused, *_ = build_app().parse_known_args(["test", "wsat", "--no-such-option", "1"])
    assert "--no-such-option" in unused


PAGE = "```sh\nmkdir sub; cd sub\nexit 3\n```\n\n```toml file=a.toml\nx = 1\n```\n"


def test_a_block_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    failing = Examples(tmp_path)
    with pytest.raises(ExampleError, match=r"^here:1: exit code 3, not 0"):
        failing.run_text(PAGE, "here")
    Examples(tmp_path).run_text(PAGE.replace("sh\nmkdir", "sh exit=3\nmkdir -p"), "here")
    assert (tmp_path / "sub" / "a.toml").read_text() == "x = 1\n"


def test_output_that_is_not_printed_is_found(tmp_path: Path) -> None:
    page = "```sh\necho one  two; echo three\n```\n\n```text output\n{}\n```\n"
    Examples(tmp_path).run_text(page.format("one two\nthree"), "here")
    with pytest.raises(ExampleError, match="not printed: one two"):
        Examples(tmp_path).run_text(page.format("three\none two"), "here")


def test_blocks_of_python_share_names_and_print_once(tmp_path: Path) -> None:
    page = "```python\na = 2\nprint('first')\n```\n\n```python\nprint(a)\n```\n\n```text output\n{}\n```\n"
    Examples(tmp_path).run_text(page.format("2"), "here")
    with pytest.raises(ExampleError, match="not printed: first"):
        Examples(tmp_path).run_text(page.format("first"), "here")


def test_captions_name_files_only() -> None:
    text = '```sh not-run="needs a real drive"\nls\n```\n\n```toml file=load.toml\na = 1\n```\n'
    assert with_captions(text) == (
        "```sh\nls\n```\n\n```{code-block} toml\n:caption: load.toml\n\na = 1\n```\n"
    )
