"""Questions of a choice: limits, weights, prices and choice.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from writecliff.choice.candidates import find_candidates
from writecliff.choice.question import FILE_NAME, Question, read_prices, read_weights
from writecliff.errors import ConfigError, StoreError

ASKED = Question(workload="oltp-4k.toml", candidates=("pm863-480", "pm863-960"))


def test_a_question_is_stored_unchanged(tmp_path: Path) -> None:
    asked = Question(
        workload="x.toml",
        candidates=("pm863-480", "pm863-960"),
        limits=("p99.99 ≤ 2 ms", "life >= 5 years"),
        weights={"life": 2.0},
        prices={"pm863-480": 99.5, "pm863-960": 149.0},
        writes_per_day_bytes=10**12,
        spare_pct=(28.0,),
        seeds=3,
    )
    asked.write(tmp_path)
    assert Question.read(tmp_path) == asked
    assert [(limit.figure, limit.relation, limit.limit, limit.unit) for limit in asked.expectations()] == [
        ("p99.99", "<=", 2.0, "ms"), ("life", ">=", 5.0, "years"),
    ]  # fmt: skip


def test_a_damaged_question_is_reported(tmp_path: Path) -> None:
    ASKED.write(tmp_path)
    path = tmp_path / FILE_NAME
    text = path.read_text()
    path.write_text(text.replace("pm863-480", "pm863-481"))
    with pytest.raises(StoreError, match=FILE_NAME):
        Question.read(tmp_path)
    with pytest.raises(ConfigError, match="was not created by `writecliff choose`"):
        Question.read(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": 0}, "--seeds must be from 1 to 100, not 0"),
        ({"scale": 0.5}, "--scale must be from 1 to 1024"),
        ({"spare_pct": (0.0,)}, "percentages above 0"),
        ({"weights": {"life": -1.0}}, "the weight of life must be 0 or more"),
        ({"weights": {"life": float("nan")}}, "the weight of life must be 0 or more"),
        ({"weights": {"life": 0.0}}, "all weights are 0"),
        ({"limits": ("fast",)}, "'fast' is not FIGURE >= LIMIT"),
    ],
)
def test_invalid_options_are_rejected(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Question(**{**vars(ASKED), **wrong})


def test_weights_are_figures_and_numbers() -> None:
    assert read_weights(["p99.99=2", "life = 0.5"]) == {"p99.99": 2.0, "life": 0.5}
    with pytest.raises(ConfigError, match="'life' is not FIGURE=WEIGHT"):
        read_weights(["life"])


def test_a_price_list_with_and_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("\ufeffdrive,EUR\npm863-480, 99.90\n\npm863-960,149,in stock\n")
    assert read_prices(path) == {"pm863-480": 99.9, "pm863-960": 149.0}
    path.write_text("pm863-480,99\n")
    assert read_prices(path) == {"pm863-480": 99.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pm863-480,99\npm863-960,cheap\n", "line 2: expected a drive and a price"),
        ("pm863-480,99\n,5\n", "line 2: expected a drive and a price"),
        ("pm863-480,99\npm863-960,-1\n", "line 2"),
        ("pm863-480,99\npm863-960,nan\n", "line 2"),
        ("pm863-480,99\npm863-480,98\n", "line 2: pm863-480 already has a price"),
    ],
)
def test_a_wrong_price_list_names_the_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_prices(path)


def test_a_price_list_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("absent.csv", "bytes.csv"):
        with pytest.raises(ConfigError, match=f"{name}"):
            read_prices(tmp_path / name)


def test_candidates_by_name_pattern_file_and_capacity(tmp_path: Path) -> None:
    assert find_candidates(["pm863-4*,pm863-960", "pm863-480"]) == ("pm863-480", "pm863-960")
    within = find_candidates(["pm863-*"], capacity="900GB..2TB")
    assert within == ("pm863-1920", "pm863-960")
    assert "hdd-15k-80" not in find_candidates(["all"])
    assert len(find_candidates([])) >= 2
    assert (
        json.dumps(find_candidates(["sim:pm863-480", "pm863-960"])) == '["pm863-480", "pm863-960"]'
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pm863-480"], "at least two drives, but only one is selected"),
        (["pm86-480", "pm863-960"], "pm863-480"),
        (["qm*"], "no drive of the catalogue matches 'qm\\*'"),
        (["/dev/sda", "pm863-960"], "/dev/sda is a real drive"),
        (["file:x", "pm863-960"], "file:x is a real drive"),
        (["pm863-480,,pm863-960"], "empty name"),
        (["./absent.toml", "pm863-960"], "absent.toml"),
        (
            ["/dev/shm/absent.toml", "pm863-960"],
            "the device file /dev/shm/absent.toml does not exist",
        ),
    ],
)
def test_invalid_candidates_are_rejected(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        find_candidates(words)
    import re

    assert re.search(message, f"{error.value} {error.value.hint}")


def test_a_range_of_capacity_is_two_sizes() -> None:
    with pytest.raises(ConfigError, match="--capacity 1TB is not a capacity range"):
        find_candidates(["pm863-*"], capacity="1TB")
