"""List of runs, as from `writecliff runs list`, in pages; pages for any store content."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.dashboard import Served, dashboard
from tests.support.run_store import make_run
from writecliff.runs.catalogue import Catalogue
from writecliff.runs.place import open_place
from writecliff.runs.queries import Selection, listed
from writecliff.runs.tags import change_tags
from writecliff.suite.folder import Member, SuiteFolder
from writecliff.ui import listing as listing_module
from writecliff.ui.library import Library
from writecliff.ui.listing import Asked, listing
from writecliff.ui.sets import Set, SetRow, coordinates, open_set

QUESTIONS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {}),
    ({"test": "wsat"}, {"test": "wsat"}),
    ({"kind": "test"}, {"where": "kind = 'test'"}),
    ({"kind": "served"}, {"where": "false"}),
    ({"status": "interrupted"}, {"status": "interrupted"}),
    ({"device": "SATA TLC"}, {"device": "sata tlc"}),
    ({"device": "nothing like it"}, {"device": "nothing like it"}),
    ({"tag": "good"}, {"tags": ["good"]}),
    ({"tag": "good, better"}, {"tags": ["good", "better"]}),
    ({"since": "2026-03-02"}, {"since": "2026-03-02"}),
    ({"sort": "run"}, {"sort": "run"}),
    ({"sort": "-run"}, {"sort": "-run"}),
    ({"q": "SECOND"}, {"where": "run = 'runs/second'"}),
    ({"q": "bett"}, {"tags": ["better"]}),
    ({"q": "%"}, {"where": "false"}),
]


def shown(page: str) -> list[str]:
    """Return the runs of a page, in order."""
    return re.findall(r'<td class="name"><a href="[^"]*">([^<]*)</a>', page)


@pytest.mark.parametrize(("asked", "selection"), QUESTIONS, ids=str)
def test_lists_are_those_of_the_command(
    store: Path, asked: dict[str, str], selection: dict[str, Any]
) -> None:
    place = open_place(str(store))
    change_tags(place, "runs/first", add=["good", "better"])
    change_tags(place, "runs/third", add=["good"])
    want = [row["run"] for row in listed(Catalogue(place), Selection(**selection))]
    page = listing(Library(str(store)), Asked.of(asked))
    assert [row["run"] for row in page.rows] == want
    assert page.total == len(want)


def test_pages_hold_all_runs_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_module, "PAGE", 2)
    first, second = (served.ask(f"/?sort=run&page={page}").text for page in (1, 2))
    assert shown(first) + shown(second) == ["runs/first", "runs/second", "runs/third"]
    assert "Page 1 of 2" in first and 'rel="next"' in first and 'rel="prev"' not in first
    assert 'href="/?sort=run&amp;page=2"' in first
    assert "There is no page 3" in served.ask("/?page=3").text


@pytest.mark.parametrize(
    "query", ["since=soon", "sort=nothing", "sort=run;drop", "page=0", "page=x", "page=9999999999"]
)
def test_what_means_nothing_is_said(served: Served, query: str) -> None:
    answer = served.ask(f"/?{query}")
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert served.complaints == []


def test_an_empty_store_and_none_at_all(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "none"):
        with dashboard(root) as served:
            assert "This store has no runs yet" in served.ask("/").text
            assert "This store has no suites or sweeps" in served.ask("/sets").text
            assert "No run matches the filter" in served.ask("/?q=x").text
    assert not (tmp_path / "none").exists()


def test_the_page_of_a_run_has_its_figures_setup_and_report(served: Served) -> None:
    page = served.of("/run", "runs/first").text
    assert "Write Saturation Test" in page and "IOPS</td>" in page and " to " in page
    assert "TC 4/QD 32" in page and "sim:sata-tlc-120" in page
    report = served.of("/report", "runs/first")
    assert report.body == (Path(served_root(served)) / "runs/first/report.html").read_bytes()
    made = served.of("/report", "runs/third")
    assert made.status == 200 and "Write Saturation Test" in made.text
    assert not (Path(served_root(served)) / "runs/third/report.html").exists()


def served_root(served: Served) -> str:
    match = re.search(r'class="store">([^<]*)<', served.ask("/").text)
    assert match is not None
    return match[1]


def test_runs_are_laid_over_one_another(served: Served) -> None:
    runs = ["runs/first", "runs/second"]
    page = served.of("/overlay", runs)
    assert page.status == 200 and "Headline figures" in page.text
    plain = served.of("/api/overlay", runs, key="iops.write").json
    (plot,) = plain["plots"]
    assert [line["name"] for line in plot["lines"]] == runs
    assert plain["marks"] <= 5_000
    means = [sum(line["y"]) / len(line["y"]) for line in plot["lines"]]
    relative = served.of("/api/overlay", runs, key="iops.write", norm="first").json["plots"][0]
    means = [sum(line["y"]) / len(line["y"]) for line in relative["lines"]]
    assert means == pytest.approx([1, means[1] / means[0]], rel=1e-4)
    plot = served.of("/api/overlay", runs, key="iops.write", norm="maximum").json["plots"][0]
    assert [max(line["y"]) for line in plot["lines"]] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("more", "status"),
    [({"key": "nothing"}, 400), ({"norm": "nothing"}, 400), ({"from": "nan"}, 400),
     ({"from": "x"}, 400), ({"columns": "inf"}, 400), ({"columns": "-3"}, 200)],
)  # fmt: skip
def test_plots_refuse_what_means_nothing(served: Served, more: dict[str, str], status: int) -> None:
    assert served.of("/api/overlay", "runs/first", **more).status == status
    assert served.of("/overlay", [f"runs/{n}" for n in range(9)]).status == 400
    assert served.ask("/overlay").status == 400
    assert served.complaints == []


def test_a_sweep_is_a_line_for_each_run(tmp_path: Path) -> None:
    members = {
        f"cell-{n}": Member("wsat", {}, "sim:x", {"queue_depth": str(2**n), "gc": "ab"[n % 2]})
        for n in range(4)
    }
    SuiteFolder.create(tmp_path / "sweeps" / "one", "sweep", "queue_depth,gc", members)
    for n in range(3):  # The last run has not started.
        make_run(tmp_path / "sweeps" / "one" / f"cell-{n}", iops=9_000.0 + 500 * n)
    axes = coordinates(open_set(Library(str(tmp_path)), "sweeps/one"))
    titles = [axis["title"] for axis in axes["axes"]]
    assert titles[:2] == ["Queue depth", "Gc"] and "IOPS" in titles[2]
    assert [run["heights"][0] for run in axes["runs"]] == [0.0, pytest.approx(1 / 3), 1.0]
    assert [run["heights"][2] for run in axes["runs"]][::2] == [0.0, 1.0]
    with dashboard(tmp_path) as served:
        assert "sweeps/one" in served.ask("/sets").text
        page = served.of("/set", "sweeps/one").text
        assert shown(page) == ["cell-0", "cell-1", "cell-2"]
        assert len(served.of("/api/set", "sweeps/one").json["runs"]) == 3
        assert shown(served.ask("/?set=sweeps%2Fone&sort=run").text)[0] == "sweeps/one/cell-0"


def test_a_suite_has_a_table_for_each_test_with_its_own_figures() -> None:
    rows = [
        SetRow("s/iops", "iops", "complete", "iops", {}, {"iops": 5.0}, {"iops": "5"}),
        SetRow("s/lat", "lat", "complete", "lat", {}, {"art": 2.0}, {"art": "2"}),
        SetRow("s/iops-2", "iops-2", "running", "iops", {}, {}, {}),
    ]
    set_ = Set("s", "suite", "pts-c", [], {"iops": "IOPS", "art": "Average (ms)"}, rows)
    assert [(part.test, dict(part.labels), [row.name for row in part.rows])
            for part in set_.tables] == [
        ("iops", {"iops": "IOPS"}, ["iops", "iops-2"]),
        ("lat", {"art": "Average (ms)"}, ["lat"]),
    ]  # fmt: skip
    (table,) = replace(set_, rows=rows[:1]).tables
    assert table.test == "", "a set of one test needs no title"
