"""Browser tests of hostile names in reports, which must remain text and run no script."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.browser.visit import Visit
from tests.support.small_drive import write_small_drive
from writecliff.cli.main import main
from writecliff.report import write_report
from writecliff.store.checksums import sealed_document
from writecliff.store.manifest import SCHEMA, read_manifest

RUN_IT = "document.documentElement.dataset.ran = 'it ran'"
EVIL = (
    f"\"'--></style></title></script><script>{RUN_IT}</script>"
    f'<img src=x onerror="{RUN_IT}"><svg onload="{RUN_IT}">$\\frac{{{{7*7}}}}=HYPERLINK("x")'
)
LOAD = """\
name = '''{evil}'''
interval = "10 ms"
[[job]]
name = '''{evil}'''
read = "50 %"
duration = "50 ms"
[[job]]
name = "=1+1"
duration = "50 ms"
"""


def writecliff(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a run with hostile load, job and drive names, in a folder named like a URL scheme."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "load.toml").write_text(LOAD.format(evil=EVIL))
    drive = write_small_drive(folder)
    run = folder / "javascript:alert(1)"
    writecliff("run", folder / "load.toml", "--on", f"sim:{drive}", "--output", run, "--quiet")
    before = read_manifest(run)
    device = replace(before.device, target=EVIL, vendor=EVIL, model=EVIL, serial=EVIL,
                     firmware=EVIL, interface=EVIL, nand_type=EVIL)  # fmt: skip
    manifest = replace(
        before, device=device, title=EVIL, reason=EVIL, warnings=(EVIL,), setup={**before.setup, EVIL: EVIL},
        versions={**before.versions, EVIL: EVIL}, command=("writecliff", EVIL),
    )  # fmt: skip
    (run / "manifest.json").write_bytes(sealed_document(SCHEMA, asdict(manifest)))
    write_report(run)
    return run


def ran(visit: Visit) -> str | None:
    evaluate: str | None = visit.page.evaluate("document.documentElement.dataset.ran")
    return evaluate


def test_names_run_nothing_and_figures_still_answer(browser: Any, run: Path) -> None:
    with Visit(browser, run / "report.html", 1200) as visit:
        assert ran(visit) is None
        # The complaints include violations that the policy had to block.
        assert visit.complaints == []
        assert visit.page.query_selector("img, iframe, object, embed") is None
        assert EVIL in visit.page.inner_text("body")
        figure = visit.page.query_selector("figure svg")
        assert figure.get_attribute("role") == "group"  # The script on the page sets this role.


def test_what_would_be_put_into_a_page_cannot_run(browser: Any, run: Path, tmp_path: Path) -> None:
    page = (run / "report.html").read_text()
    put_in = f'<body><script>{RUN_IT}</script><img src="x" onerror="{RUN_IT}">' \
        f'<a id="go" href="javascript:{RUN_IT}">go</a><style>main {{ display: none }}</style>'  # fmt: skip
    changed = tmp_path / "changed.html"
    changed.write_text(page.replace("<body>", put_in, 1))
    with Visit(browser, changed, 1200) as visit:
        visit.page.click("#go")
        assert ran(visit) is None
        assert visit.page.is_visible("main")
        refused = [text for text in visit.complaints if "Content Security Policy" in text]
        assert len(refused) >= 4
        figure = visit.page.query_selector("figure svg")
        assert figure.get_attribute("role") == "group"


def test_a_page_about_several_runs(browser: Any, run: Path, tmp_path: Path) -> None:
    page, other = tmp_path / "compared.html", tmp_path / "data:text,x"
    shutil.copytree(run, other)
    writecliff("compare", run, other, "--output", page)
    with Visit(browser, page, 1200) as visit:
        assert ran(visit) is None
        assert visit.complaints == []
        links = [link.get_attribute("href") for link in visit.page.query_selector_all("a[href]")]
        assert [link for link in links if link.startswith("javascript")] == []


def test_cells_of_its_files_are_no_formulas(run: Path, tmp_path: Path) -> None:
    import csv

    writecliff("report", run, "--output", tmp_path / "r.html", "--csv", tmp_path / "csv")
    names = sorted(os.listdir(tmp_path / "csv"))
    assert names
    texts = set()
    for name in names:
        with (tmp_path / "csv" / name).open(newline="") as file:
            texts |= {cell for row in csv.reader(file) for cell in row}
    assert "'=1+1" in texts
    assert [text for text in texts if text[:1] in "=@+\t" and text] == []
