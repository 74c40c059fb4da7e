"""Malicious stores and requests: no content from outside the store, and no crash."""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.dashboard import Served, dashboard
from tests.support.run_store import make_run
from writecliff.runs.delete import delete_runs
from writecliff.runs.place import open_place
from writecliff.runs.tags import SCHEMA as TAGS_SCHEMA
from writecliff.store.checksums import NO_DIGEST, PARQUET_KEY, seal_parquet, sealed_document
from writecliff.store.manifest import SCHEMA, read_manifest
from writecliff.ui import run_page
from writecliff.ui import series as series_module

SECRET = "the-secret-of-somebody-else"
ABOUT = ("/run", "/report", "/overlay", "/api/series", "/api/status", "/api/overlay", "/set",
         "/api/set", "/delete")  # fmt: skip


def is_up(served: Served) -> bool:
    return served.ask("/").status == 200 and served.of("/run", "runs/first").status == 200


# -- paths ------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Create a run next to the store, with a secret in every file that could be shown."""
    folder = make_run(tmp_path / "outside" / SECRET, title=SECRET)
    (folder / "report.html").write_text(SECRET)
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.mark.parametrize("path", ABOUT)
def test_names_do_not_lead_out_of_the_store(editable: Served, outside: Path, path: str) -> None:
    names = [
        f"../outside/{SECRET}", f"runs/../../outside/{SECRET}", str(outside), f"/{outside}",
        f"runs/first/../../../outside/{SECRET}", "..", ".", "/", "", "runs", "runs/first/",
        "./runs/first", "runs//first", "runs/first/..", "runs\\first", "runs/first\0", "/etc",
        f"file://{outside}", "runs/%2e%2e/first", ".writecliff", "x" * 5_000,
    ]  # fmt: skip
    for name in names:
        answer = editable.of(path, name)
        assert answer.status in (400, 404), (name, answer.status)
        assert SECRET not in answer.text.replace(str(outside), "").replace(name, "")
    assert is_up(editable) and editable.complaints == []


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py",
     "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/ui.css/../../server.py",
     "/static/report.html.j2", "/static/../templates/list.html.j2", "/static/bokeh.js/../x",
     "/../../etc/passwd", "//etc/passwd", "/runs/first/manifest.json", "/static/ui.css%00.js",
     "/report/../../etc/passwd", "/static/"],
)  # fmt: skip
def test_paths_do_not_lead_out_of_what_is_installed(served: Served, path: str) -> None:
    answer = served.ask(path)
    assert answer.status in (400, 403, 404)
    assert "import" not in answer.text and "root:" not in answer.text and "block" not in answer.text


def test_links_do_not_lead_out_of_the_store(store: Path, outside: Path) -> None:
    (store / "runs" / "linked").symlink_to(outside)
    make_run(store / "runs" / "page")
    (store / "runs" / "page" / "report.html").symlink_to(outside / "secret.txt")
    make_run(store / "runs" / "table")
    os.replace(store / "runs" / "table" / "rounds.parquet", store.parent / "rounds.parquet")
    (store / "runs" / "table" / "rounds.parquet").symlink_to(store.parent / "rounds.parquet")
    make_run(store / "runs" / "pipe")
    os.mkfifo(store / "runs" / "pipe" / "report.html")
    with dashboard(store, allow_changes=True) as served:
        for run in ("runs/linked", "runs/page", "runs/table", "runs/pipe"):
            for path in ABOUT[:6]:
                answer = served.of(path, run)
                assert answer.status == 403, (run, path)
                assert SECRET not in answer.text
            assert served.form("/delete", {"name": run}).status == 403
            assert served.form("/tags", {"name": run, "add": "x"}).status == 403
        page = served.ask("/")
        assert SECRET not in page.text
        assert page.text.count("a link out of the store") == 4
        assert is_up(served)
    assert (outside / "manifest.json").exists()


def test_links_within_the_store_are_followed(store: Path) -> None:
    (store / "imports").mkdir()
    (store / "imports" / "again").symlink_to(store / "runs" / "first")
    with dashboard(store) as served:
        assert served.of("/run", "imports/again").status == 200
        assert served.of("/api/series", "imports/again").json["intervals"] > 0


# -- scripts ----------------------------------------------------------------------------------

EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'{{7*7}}</title>"


def test_text_of_a_run_stays_text(store: Path) -> None:
    name = EVIL.replace("/", "|")
    folder = make_run(store / "runs" / name)
    before = read_manifest(folder)
    device = replace(before.device, target=EVIL, vendor=EVIL, model=EVIL, serial=EVIL,
                     firmware=EVIL, interface=EVIL, nand_type=EVIL, device_hash=EVIL)  # fmt: skip
    manifest = replace(
        before, device=device, title=EVIL, edition=EVIL, reason=EVIL, warnings=(EVIL,),
        command=("writecliff", EVIL), setup={EVIL: EVIL}, options={EVIL: EVIL},
        versions={EVIL: EVIL}, deviations=({"text": EVIL},),
        phases=({"name": EVIL, "detail": EVIL, "started": EVIL},),
        expectations=({"text": EVIL},),
        interruptions=({"after_steps": EVIL}, {"after_steps": 1}, {"after_steps": 2}),
    )  # fmt: skip
    (folder / "manifest.json").write_bytes(sealed_document(SCHEMA, asdict(manifest)))
    (folder / "tags.json").write_bytes(sealed_document(TAGS_SCHEMA, {"tags": [EVIL]}))
    run = f"runs/{name}"
    with dashboard(store, allow_changes=True) as served:
        pages = [
            served.ask("/"), served.of("/run", run), served.of("/overlay", [run, "runs/first"]),
            served.of("/delete", run), served.of("/run", EVIL), served.of("/set", EVIL),
            served.ask("/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&since=%3Cimg%20src=x%3E"),
            served.ask("/?tag=%22%3E%3Cscript%3E&sort=%3Cscript%3E&device=%22%20onfocus=%22x"),
        ]  # fmt: skip
        for page in pages:
            for bad in ("<script>alert", "<img src=x", '"><script', '" onfocus'):
                assert bad not in page.text, bad
        assert [page.status for page in pages] == [200, 200, 200, 200, 404, 404, 400, 400]
        assert "after 1 step, resumed" in pages[1].text and "after 2 steps" in pages[1].text
        for path in ("/api/series", "/api/overlay", "/api/status"):
            answer = served.of(path, run)
            assert answer.headers["Content-Type"].startswith("application/json")
        assert is_up(served) and served.complaints == []


# -- huge, damaged ----------------------------------------------------------------------------


def test_a_huge_run_is_shortened_or_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_run(store / "runs" / "huge")
    big = "long " * 200_000
    manifest = replace(
        read_manifest(folder), title=big, warnings=(big[:100_000],) * 300,
        setup={f"{n}": big[:1000] for n in range(3_000)}, options={"file": big},
    )  # fmt: skip
    (folder / "manifest.json").write_bytes(sealed_document(SCHEMA, asdict(manifest)))
    # The file has a few kilobytes, but contains a hundred million rows.
    rows = pa.table({"seq": pa.array([1], pa.int32())}).take(pa.array([0] * 1000))
    monkeypatch.setattr(series_module, "MOST_ROWS", 900)
    table = rows.replace_schema_metadata({PARQUET_KEY: NO_DIGEST, b"writecliff.steps": b"12"})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    (folder / "intervals.parquet").write_bytes(seal_parquet(sink.getvalue().to_pybytes()))
    with dashboard(store) as served:
        page = served.of("/run", "runs/huge")
        assert page.status == 200
        assert len(page.body) < 1_000_000
        answer = served.of("/api/series", "runs/huge")
        assert answer.status == 409
        assert "1,000 rows of intervals; plots are limited to 900" in answer.json["error"]
        assert len(served.ask("/").body) < 200_000
        assert is_up(served)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, how) for name in ("manifest.json", "intervals.parquet")
          for how in ("cut", "flipped", "empty", "gone", "random")),
        *((name, how) for name in ("rounds.parquet", "histograms.parquet") for how in
          ("flipped", "gone")),
        ("tags.json", "random"), ("figures.json", "random"),
    ],
)  # fmt: skip
def test_a_damaged_run_is_said_and_harms_nobody(store: Path, name: str, how: str) -> None:
    path = store / "runs" / "second" / name
    data = path.read_bytes() if path.exists() else b'{"schema": "writecliff/tags/1"}'
    middle = len(data) // 2
    made = {
        "cut": data[:middle], "empty": b"", "random": bytes(range(256)) * 20,
        "flipped": data[:middle] + bytes([data[middle] ^ 64]) + data[middle + 1 :],
    }  # fmt: skip
    path.unlink(missing_ok=True)
    if how != "gone":
        path.write_bytes(made[how])
    with dashboard(store) as served:
        page = served.of("/run", "runs/second")
        assert page.status == 200
        if name == "manifest.json":
            assert "damaged" in page.text
        assert b"runs/second" in served.ask("/").body
        for path_ in ("/api/series", "/api/status", "/api/overlay", "/report"):
            answer = served.of(path_, "runs/second")
            assert answer.status in (200, 400, 409), (path_, answer.status)
            if answer.status != 200 and path_.startswith("/api"):
                assert answer.json["error"]
        assert served.of("/overlay", ["runs/first", "runs/second"]).status in (200, 409)
        assert is_up(served)
        assert [complaint for complaint in served.complaints if "Error" in complaint] == []


def test_a_manifest_that_nests_deeply_is_a_damaged_run(store: Path) -> None:
    (store / "runs" / "second" / "manifest.json").write_text("[" * 100_000)
    with dashboard(store) as served:
        assert "damaged" in served.of("/run", "runs/second").text
        assert is_up(served)


# -- runs that appear and disappear -----------------------------------------------------------


def test_runs_come_and_go_while_somebody_looks(store: Path) -> None:
    ended = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        place = open_place(str(store))
        try:
            for n in range(40):
                if ended.is_set():
                    break
                shutil.copytree(store / "runs" / "second", store / "runs" / f"new-{n}")
                if n % 2:
                    delete_runs(place, [f"runs/new-{n - 1}"])
        except BaseException as error:
            failed.append(error)

    with dashboard(store) as served:
        writer = threading.Thread(target=write)
        writer.start()
        try:
            statuses = set()
            for n in range(40):
                assert served.ask("/").status == 200
                for path in ("/run", "/api/series", "/api/status", "/report"):
                    statuses.add(served.of(path, f"runs/new-{n}").status)
        finally:
            ended.set()
            writer.join()
        assert statuses <= {200, 404, 400, 409}
        assert failed == [] and is_up(served)
        assert served.complaints == []


def test_a_run_that_goes_away_between_two_looks_is_not_found(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run_page.RunDirectory.open

    def gone(path: Path, **more: bool) -> object:
        shutil.rmtree(path, ignore_errors=True)
        return plain(path, **more)

    with dashboard(store) as served:
        monkeypatch.setattr(run_page.RunDirectory, "open", gone)
        answer = served.of("/api/status", "runs/second")
        assert answer.status in (400, 404, 409)
        assert json.loads(answer.body)["error"]
        monkeypatch.undo()
        assert is_up(served)


def test_large_and_broken_requests_are_refused(editable: Served) -> None:
    with suppress(ConnectionError):  # The server stops reading early.
        large = {"name": "runs/first", "add": "x" * 70_000}
        assert editable.form("/tags", large).status in (400, 413)
    assert editable.ask("/?" + "a=1&" * 3_000).status in (200, 400, 414)
    assert editable.ask("/?q=%ff%fe").status in (200, 400)
    assert editable.ask("/", method="PUT").status in (403, 405)
    assert is_up(editable)
