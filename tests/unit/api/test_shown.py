"""Results as text on a terminal and as HTML in a notebook, with names escaped."""

from __future__ import annotations

import base64
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import writecliff
from tests.support.small_drive import write_small_drive
from writecliff import Job, Run, Store, Suite, Workload
from writecliff.api import Figures, Table
from writecliff.choice.question import Question
from writecliff.errors import ConfigError
from writecliff.report.headline import Headline, Interval
from writecliff.report.suite_page import SuitePage
from writecliff.shown import ROWS, Grid, Shown, Shows
from writecliff.suite.folder import SuiteFolder

NASTY = "<script>alert(1)</script> & 'x' \"y\""


class Tags(HTMLParser):
    """Elements of a page, its text, and whether each element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(thing: Shows) -> Tags:
    tags = Tags(thing._repr_html_())
    assert tags.open == []
    return tags


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    drive = write_small_drive(folder)
    job = Job(name="<b>mix</b>", read_pct=70, queue_depth=8).with_duration_s(0.05)
    for number in (1, 2):
        load = Workload("load & more", (job,))
        writecliff.run_workload(
            load, f"sim:{drive}", output=folder / "runs" / f"run-{number}", seed=number
        )
    return writecliff.open_store(str(folder))


@pytest.fixture(scope="module")
def run(store: Store) -> Run:
    return store.load("run-1")


def test_everything_in_a_fragment_is_escaped() -> None:
    shown = Shown(NASTY, [NASTY], [Grid((NASTY,), [(NASTY,)], "l", 7)])
    tags = Tags(shown.html())
    assert "script" not in tags.tags
    assert tags.text.count(NASTY) == 4
    assert "… 7 rows in total" in tags.text


def test_text_has_no_control_characters() -> None:
    shown = Shown("a\x1b[31m\nb", (), [Grid(("x",), [("c\r\x07",)], "l")])
    assert not any(c in shown.text() for c in "\x1b\r\x07")
    assert shown.text().splitlines()[0] == r"a\x1b[31m\nb"


def plot_in(thing: Shows) -> ElementTree.Element:
    """Return the only image of a notebook output, whose colours follow the reader's scheme."""
    (uri,) = re.findall(r"<img [^>]*src='([^']+)'", thing._repr_html_())
    kind, _, data = uri.partition(",")
    assert kind == "data:image/svg+xml;base64"
    svg = ElementTree.fromstring(base64.b64decode(data))
    assert "prefers-color-scheme: dark" in "".join(svg.itertext())
    assert not {name for part in svg.iter() for name in part.attrib if name.startswith("on")}
    return svg


def test_a_run_shows_the_first_screen_of_its_report(run: Run) -> None:
    model = run.report.model()
    page = page_of(run)
    assert "b" not in page.tags  # The job name is escaped.
    for text in (model.question, model.finding, model.verdict.headline, *model.verdict.meaning):
        assert text in page.text
    cards = model.key_figures[:5]
    assert len(cards) >= 3
    assert all(f"{card.value} {card.unit}".rstrip() in page.text for card in cards)
    assert all(text in page.text for text in model.disclosures)
    svg = plot_in(run)
    assert float(svg.attrib["width"]) > float(svg.attrib["height"]) > 300


def test_the_text_of_a_run_has_its_figures(run: Run) -> None:
    assert str(run).splitlines()[0].startswith("workload on sim:")
    assert run.verdict in str(run)
    assert all(figure.label in str(run) for figure in run.figures)
    assert repr(run) == f"Run(path={run.path!r})"


def test_rounds_show_ten_columns_and_all_on_request(run: Run) -> None:
    rounds = run.rounds
    assert page_of(rounds).tags.count("th") == 10
    assert f"10 of {rounds.num_columns} columns; .wide() displays all" in str(rounds)
    assert page_of(rounds.wide()).tags.count("th") == rounds.num_columns > 50
    assert "columns;" not in str(rounds.wide())


def test_a_run_that_is_damaged_says_so_and_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    assert "manifest.json" in page_of(Run(tmp_path)).text


def test_a_suite_lists_its_runs(run: Run, tmp_path: Path) -> None:
    runs = {"one": run, "gone": Run(tmp_path / "gone")}
    written = SuitePage(Path("page.html"), {}, None, None)
    folder = SuiteFolder(tmp_path, "suite", "pts-e", {}, "")
    suite = Suite(Path(NASTY), written.path, runs, {}, folder, written)
    page = page_of(suite)
    assert page.tags.count("tr") == 3
    assert run.verdict in page.text and "script" not in page.tags


def test_a_step_shows_each_operation(tmp_path: Path) -> None:
    engine = writecliff.SimEngine(str(write_small_drive(tmp_path)))
    result = engine.run(Workload("x", (Job(read_pct=50, ios=200, queue_depth=4),)))
    lines = str(result).splitlines()
    assert [line.split()[1] for line in lines[-2:]] == ["read", "write"]
    assert page_of(result).tags.count("tr") == 3


def test_figures_are_a_tuple_with_keys_and_a_table() -> None:
    mean = Headline(key="iops", label="IOPS", value=10.0, unit="IOPS", interval=Interval(9, 11, ""))
    waf = Headline(key="waf", label="WAF", value=2.0, unit="", higher_is_better=False)
    figures = Figures([mean, waf])
    assert figures["waf"] is waf and figures[0] is mean and len(figures) == 2
    with pytest.raises(KeyError):
        figures["nothing"]
    table = figures.table()
    assert table.column("low").to_pylist() == [9.0, None]
    assert table.column("higher_is_better").to_pylist() == [True, False]


def test_tables_become_frames(run: Run) -> None:
    rounds = run.rounds
    assert rounds.to_pandas().shape == rounds.to_polars().shape == rounds.shape
    assert run.figures.to_pandas()["key"].tolist() == [figure.key for figure in run.figures]
    assert pa.table(rounds) == rounds.arrow


def test_a_missing_library_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    for convert in (run.rounds.to_pandas, run.figures.to_polars):
        with pytest.raises(ConfigError, match="is not installed") as caught:
            convert()
        assert "pip install 'writecliff[" in str(caught.value.hint)


def test_a_long_table_is_shown_in_part() -> None:
    table = Table(pa.table({"n": range(1000)}))
    assert page_of(table).tags.count("tr") == 1 + ROWS
    assert str(table).endswith("… 1,000 rows in total")
    assert len(table) == 1000


def test_a_table_is_not_taken_for_more_than_it_is() -> None:
    table = Table(pa.table({"n": [1]}))
    with pytest.raises(AttributeError):
        table._repr_svg_  # noqa: B018
    import copy
    import pickle

    assert copy.copy(table).arrow == pickle.loads(pickle.dumps(table)).arrow == table.arrow


def test_the_store_answers_as_the_commands_do(store: Store) -> None:
    listed = store.list(sort="run")
    assert listed.column("run").to_pylist() == ["runs/run-1", "runs/run-2"]
    assert len(store.list(where="run like '%-2'")) == 1
    assert store.sql("select count(distinct run) as n from figures").to_pylist() == [{"n": 2}]
    assert store.tag("run-1", add=["base"]) == ["base"]
    assert store.list(tags=["base"]).column("run").to_pylist() == ["runs/run-1"]
    assert store.tag("run-1", remove=["base"]) == []
    assert page_of(store).tags.count("tr") == 3


def test_differences_of_runs(store: Store) -> None:
    comparison = store.diff("run-1", "run-2")
    page = page_of(comparison)
    assert "seed" in page.text and f"B in all: {comparison.judgement}" in page.text
    assert "b" not in page.tags
    same = store.diff("run-1", "run-1")
    assert same.judgement == "equal"
    both = writecliff.compare(store.load("run-1"), store.load("run-2"))
    page = page_of(both)
    assert both.verdict in page.text and " against " in page.text
    assert page.tags.count("tr") == 1 + min(5, len(both.figures))
    plot_in(both)
    assert repr(both) == f"<Comparison: {both.verdict}>"
    assert str(both).count("\n") > len(both.figures)


def test_a_choice_shows_its_ranking_and_a_plot(tmp_path: Path) -> None:
    slow = write_small_drive(tmp_path, program='["9 ms"]').rename(tmp_path / "slow.toml")
    usual = write_small_drive(tmp_path).rename(tmp_path / "usual.toml")
    load = tmp_path / "mix.toml"
    load.write_text(
        'name = "mix"\n[[job]]\nname = "mix"\nread = "70 %"\nqueue_depth = 8\nduration = "2 s"\n'
    )
    drives = (str(usual), str(slow))
    question = Question(workload=str(load), candidates=drives, precondition="none")
    choice = writecliff.choose_drive(question, output=tmp_path / "choice", workers=1)
    page = page_of(choice)
    assert "Which drive for mix?" in page.text and choice.answer.verdict in page.text
    assert page.tags.count("tr") == 3
    assert "2 simulated drives under the same load" in page.text
    plot_in(choice)
    assert repr(choice) == f"<Choice: {choice.answer.verdict}>"


def test_mistakes_of_the_store(store: Store) -> None:
    with pytest.raises(ConfigError, match="matches the names of 2 runs"):
        store.load("run-")
    with pytest.raises(ConfigError, match="does not contain a run"):
        store.tag("nothing", add=["x"])
    with pytest.raises(ConfigError, match="does not return rows"):
        store.sql("-- nothing")
