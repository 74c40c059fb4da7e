"""The report as PDF: header block once, stamp on each page, byte-identical every time."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.sample_report import COLUMNS, STAMP, sample_report
from writecliff.report.pages import render_html
from writecliff.report.pdf import PdfUnavailableError, render_pdf

pypdf = pytest.importorskip("pypdf", reason="reads the PDF")
pytestmark = pytest.mark.draws

ROOT = Path(__file__).parents[3]
FIGURES = ("iops v block size", "steady window", "bars")


@pytest.fixture(scope="module", autouse=True)
def _weasyprint() -> None:
    """Import it in the processes that run these tests, not in all that collect them."""
    pytest.importorskip("weasyprint", reason="needs the extra pdf and Pango")


@pytest.fixture(scope="module")
def data() -> bytes:
    return render_pdf(sample_report(figures=FIGURES))


@pytest.fixture(scope="module")
def pages(data: bytes) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages]


def test_the_header_block_is_on_the_first_page_only(pages: list[str]) -> None:
    labels = {name for names in COLUMNS.values() for name in names}
    flat = " ".join(pages[0].split())
    assert "IOPS Test (REQUIRED) - Report Page" in flat
    assert "Test Run Date: 03/02/2026 03:30 PM UTC" in flat
    assert "Rev. PTS-E 2.0.2" in flat
    assert all(column in flat for column in (*COLUMNS, *labels))
    assert not any("Motherboard" in text for text in pages[1:])


def test_every_page_is_numbered_named_and_stamped_once(pages: list[str]) -> None:
    assert len(pages) == 3, "the first, a table of 60 rows goes on to the others"
    for number, text in enumerate(pages, 1):
        assert f"Page {number} of {len(pages)}" in text
        assert text.count(STAMP) == 1
        assert "IOPS Test: Example Data Centre Series 9000, 960 GB" in text


def test_a_conformant_report_has_no_stamp() -> None:
    assert STAMP in render_html(sample_report(figures=()))
    assert STAMP not in render_html(sample_report(stamp="", figures=()))


def test_all_contents_are_there(pages: list[str]) -> None:
    whole = "\n".join(pages)
    for number, kind in enumerate(FIGURES, 1):
        assert f"Plot {number} - {kind}" in whole
    for text in ("31,000", "Block size (KiB)", "least-squares line", "59,000.5", "Disclosures"):
        assert text in whole


def test_no_date_no_machine_and_fonts_of_our_own(data: bytes) -> None:
    reader = pypdf.PdfReader(io.BytesIO(data))
    assert set(reader.metadata or {}) == {"/Title", "/Producer"}
    fonts: set[str] = set()
    for page in reader.pages:
        for font in page["/Resources"]["/Font"].values():  # type: ignore[index]
            fonts.add(font.get_object()["/BaseFont"].partition("+")[2])
    assert fonts == {"Report-Sans", "Report-Sans-Bold", "Report-Mono"}


def test_figures_stay_vectors(data: bytes) -> None:
    reader = pypdf.PdfReader(io.BytesIO(data))
    assert not any(page.images for page in reader.pages)


def test_the_same_report_gives_the_same_bytes_in_another_process(data: bytes) -> None:
    code = (
        "import hashlib, sys; sys.path.insert(0, '.')\n"
        "from tests.support.sample_report import sample_report\n"
        "from writecliff.report.pdf import render_pdf\n"
        f"model = sample_report(figures={FIGURES!r})\n"
        "print(hashlib.sha256(render_pdf(model)).hexdigest())\n"
    )
    text = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert text.stdout.strip() == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "error", [ImportError("no module"), OSError("cannot load library 'x'\nat")]
)
def test_without_weasyprint_one_clear_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    import builtins

    plain = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "weasyprint":
            raise error
        return plain(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PdfUnavailableError, match=r"^PDF reports require [^\n]+$") as caught:
        render_pdf(sample_report(figures=()))
    assert caught.value.hint in (
        'pip install "writecliff[pdf]"',
        "on Debian: apt-get install libpango-1.0-0 libpangoft2-1.0-0",
    )
