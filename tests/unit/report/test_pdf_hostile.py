"""Hostile names in a PDF report: they stay text and create no links."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.sample_report import sample_report
from writecliff.report.csvs import with_data, write_files
from writecliff.report.model import Section, Verdict
from writecliff.report.pdf import render_pdf
from writecliff.report.table import DataFile, table

pypdf = pytest.importorskip("pypdf", reason="reads the PDF")

SECRET = "the contents of a file of the reader"
NAMES = (
    '"\'--></style></title></script><script>app.alert(1)</script>',
    '<img src="{url}"><iframe src="{url}"></iframe><object data="{url}"></object>',
    '<link rel="attachment" href="{url}"><link rel="stylesheet" href="{url}">',
    '<a href="javascript:app.launchURL(1)">go</a><a href="{url}">go</a>',
    '"; }} @import url("{url}"); @page {{ background: url("{url}") }} /*',
    "<svg><image href='{url}'/><use href='{url}#x'/></svg><style>*{{content: url({url})}}</style>",
    ") >> /OpenAction << /S /JavaScript /JS (app.alert(1)) >> endobj",
    "=HYPERLINK(\"{url}\") \u202e\u2066 \x1b[2J \\ \udc80 \ud800 \uffff \x00",
    "a" * 3_000,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _weasyprint() -> None:
    """Import it in the processes that run these tests, not in all that collect them."""
    pytest.importorskip("weasyprint", reason="needs the extra pdf and Pango")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a report whose every text is a hostile name."""
    secret = tmp_path_factory.mktemp("secret") / "secret.svg"
    secret.write_text(f'<svg xmlns="http://www.w3.org/2000/svg"><text>{SECRET}</text></svg>')
    names = [name.replace("{url}", secret.as_uri()).replace("{{", "{") for name in NAMES]
    plain = sample_report(figures=())
    shown = table(names[0], (names[1], names[2]), [(name, name) for name in names], "ll")
    sections, files = with_data(
        (Section(names[5], names[3], (), (shown,)),), (DataFile(names[3], "a\n1\n"),)
    )
    header = replace(plain.header, vendor=names[0], model=names[4], sponsor=names[3],
                     page_title=names[5], subtitle=names[6], revision=names[7])  # fmt: skip
    model = replace(
        plain, title="".join(names[:8]), header=header, disclosures=tuple(names), notes=tuple(names),
        verdict=Verdict("good", names[0], tuple(names)), stamp=names[4] + names[0],
        sections=sections, footer=tuple((name, name) for name in names), data=files,
    )  # fmt: skip
    return pypdf.PdfReader(io.BytesIO(render_pdf(model)))


def _dictionaries(value: Any, seen: set[int], depth: int = 0) -> Any:
    """Return all dictionaries of a document."""
    value = value.get_object() if hasattr(value, "get_object") else value
    if id(value) in seen or depth > 50:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        yield value
        for inner in list(value.values()):
            yield from _dictionaries(inner, seen, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _dictionaries(inner, seen, depth + 1)


def test_the_names_are_text(read: Any) -> None:
    texts = (page.extract_text().replace("\0", "") for page in read.pages)
    whole = "".join("".join(text.split()) for text in texts)
    assert "<script>app.alert(1)</script>" in whole
    assert "/OpenAction<</S/JavaScript" in whole
    assert "".join(SECRET.split()) not in whole


def test_nothing_runs_opens_or_is_attached(read: Any) -> None:
    dictionaries = list(_dictionaries(read.trailer, set()))
    assert len(dictionaries) > 20
    keys = {key for dictionary in dictionaries for key in dictionary}
    assert not keys & {"/JS", "/OpenAction", "/AA", "/Launch", "/EmbeddedFiles", "/EF", "/XFA"}
    links = [
        str(dictionary["/URI"])
        for dictionary in dictionaries
        if "/URI" in dictionary and dictionary.get("/S") == "/URI"
    ]
    assert [link for link in links if not link.startswith(("data:", "https:"))] == []
    assert not {str(dictionary.get("/Subtype")) for dictionary in dictionaries} & {
        "/Image",
        "/FileAttachment",
        "/Movie",
    }


def test_a_folder_of_csv_takes_no_name_for_a_path(tmp_path: Path) -> None:
    (folder := tmp_path / "csv").mkdir()
    names = ("../x", "/etc/x", "..", ".", "", "a/b", "\x00", "a\nb", "x" * 5000, *NAMES[:8])
    write_files([DataFile(name, "a\n") for name in names], folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["csv"]
    assert all(path.is_file() for path in folder.iterdir())
