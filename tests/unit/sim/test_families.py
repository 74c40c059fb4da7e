"""Drive families: changes made by a variant, and completeness of every catalogue drive."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from writecliff import _native
from writecliff.devices import FOLDER as PRESETS
from writecliff.devices import (
    describe,
    describe_device,
    families,
    open_device,
    preset_names,
    read_device_file,
    show_device,
)
from writecliff.devices.families import FOLDER, variant_text, variants
from writecliff.engines.sim import SimEngine
from writecliff.errors import ConfigError
from writecliff.workload.model import BlockSize, Job, Workload

FAMILIES = sorted(FOLDER.glob("*.toml"))
# Keys that name a drive. All other keys need a source.
NAMES = {"name", "description", "model", "vendor", "firmware", "interface"}


def _device(name: str) -> dict[str, dict[str, object]]:
    return tomllib.loads(read_device_file(name)[0])


@pytest.fixture
def family_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder of families with a single file, that of the PM863."""
    path = tmp_path / "mine.toml"
    path.write_text((FOLDER / "pm863.toml").read_text())
    monkeypatch.setattr(families, "FOLDER", tmp_path)
    variants.cache_clear()
    yield path
    variants.cache_clear()


def _with_variant(path: Path, text: str) -> None:
    base = path.read_text().split("[variants]")[0]
    path.write_text(f"{base}[variants]\n\n[variants.mine]\n{text}\n")


def _silent(path: Path) -> list[str]:
    """Return lines with a value but no source. Check that a variant's capacity is the one sold."""
    base, _, tables = path.read_text().partition("[variants]")
    value = re.compile(r'^"?([\w.]+)"? *= [^#]*$')
    lines = [(line, NAMES) for line in base.splitlines()]
    lines += [(line, {*NAMES, "user_capacity"}) for line in tables.splitlines()]
    return [line for line, free in lines if (m := value.match(line)) and m[1] not in free]


@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.stem)
def test_every_value_of_a_family_has_a_source(path: Path) -> None:
    assert _silent(path) == []


def test_a_value_without_a_source_is_seen(family_folder: Path) -> None:
    family_folder.write_text(
        'a = 1\nb = 2  # why\nname = "x"\n[variants]\n[variants.c]\n"d.e" = 3\n'
    )
    assert _silent(family_folder) == ["a = 1", '"d.e" = 3']


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_reads_and_shows_its_sources(name: str) -> None:
    shown = show_device(name)
    assert shown.name == name
    assert shown.capacity_bytes > 1e9
    sources = {value.key: value.source for value in shown.values}
    assert all(source for key, source in sources.items() if key.rpartition(".")[2] not in NAMES), [
        key for key, source in sources.items() if not source
    ]


@pytest.mark.parametrize("bytes_max", [240e9, pytest.param(4e12, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", preset_names())
def test_every_preset_builds(name: str, bytes_max: float) -> None:
    """Check scaled-down drives, because a full 8 TB drive takes 16 GB of memory."""
    text, file_name = read_device_file(name)
    device = open_device(text, file_name)
    if describe(device).kind == "ssd":
        scale = max(32, show_device(name).capacity_bytes / bytes_max)
        device = device.scaled(device.nearest_scale(scale), 1 << 20)
    engine = SimEngine.from_device(device)
    job = Job(block_sizes=(BlockSize(128 * 1024),), pattern="sequential", ios=64, queue_depth=8)
    result = engine.run(Workload("w", (job,)))
    assert result.total("write") == (64, 64 * 128 * 1024)
    engine.check()


def test_a_variant_has_dies_rated_writes_and_name_of_its_own() -> None:
    whole, small = _device("pm863-960"), _device("pm863-240")
    assert small["name"] == "pm863-240"
    assert (small["flash"]["channels"], small["flash"]["dies_per_channel"]) == (8, 2)
    same = dict(whole["flash"], dies_per_channel=2)
    assert small["flash"] == same
    assert small["ftl"] == whole["ftl"] and small["controller"] == whole["controller"]
    # The drive writes are equal: 1,400 TB on 960 GB correspond to 350 TB on 240 GB.
    assert small["rated_writes"] == "350 TB"
    assert show_device("pm863-240").raw_bytes * 4 == show_device("pm863-960").raw_bytes


def test_few_dies_use_few_channels() -> None:
    small = _device("pm863-120")
    assert (small["flash"]["channels"], small["flash"]["dies_per_channel"]) == (8, 1)
    large = _device("pm863-3840")
    assert large["flash"]["dies_per_channel"] == 32


def test_a_cut_changes_capacity_and_nothing_of_the_flash() -> None:
    whole, cut = _device("pm863-960"), _device("pm863-800")
    assert cut["flash"] == whole["flash"]
    assert show_device("pm863-800").overprovision_pct > show_device("pm863-960").overprovision_pct


def test_an_exception_is_a_dotted_key() -> None:
    without, with_cache = _device("sata3-256-wcd"), _device("sata3-256-wce")
    assert without["controller"]["write_cache"] is False
    assert with_cache["controller"]["write_cache"] is True
    drives = variants()
    both = (*drives["sata3-256-wcd"].changes, *drives["sata3-256-wce"].changes)
    changed = {key.rpartition(".")[2] for key in both}
    for table in ("flash", "ftl", "controller", "link"):
        for key in (set(without[table]) | set(with_cache[table])) - changed:
            assert without[table][key] == with_cache[table][key]


def test_sources_of_variants_are_shown() -> None:
    def source(name: str, key: str) -> str:
        return next(value.source for value in show_device(name).values if value.key == key)

    assert source("pm863-240", "flash.dies_per_channel") == "256 GiB"
    assert source("pm863-240", "user_capacity") == "marketed capacity"
    assert "cut by the host" in source("pm863-800", "user_capacity")
    assert source("pm863-240", "rated_writes") == "as many drive writes as the family"
    assert "WCE" in source("sata3-256-wce", "controller.write_cache")


def test_keys_that_the_family_lacks_are_added_to_their_table(family_folder: Path) -> None:
    _with_variant(
        family_folder,
        'user_capacity = "960 GB"  # s\n'
        '"controller.erase_lead" = 3  # why\n'
        '"flash.rated_cycles" = 7000  # because',
    )
    text = variant_text(variants()["mine"])
    device = tomllib.loads(text)
    assert device["controller"]["erase_lead"] == 3
    assert device["flash"]["rated_cycles"] == 7000
    assert "erase_lead = 3  # why" in text and "rated_cycles = 7000  # because" in text
    assert text.count("rated_cycles") == 1


def test_values_of_all_kinds_are_written_as_toml(family_folder: Path) -> None:
    _with_variant(
        family_folder,
        '"flash.read" = ["50 us", "60 us", "70 us"]\n'
        '"flash.multi_plane" = false\n'
        'model = "another"\n'
        'rated_writes = "9 TB"',
    )
    device = tomllib.loads(variant_text(variants()["mine"]))
    assert device["flash"]["read"] == ["50 us", "60 us", "70 us"]
    assert device["flash"]["multi_plane"] is False
    assert (device["model"], device["rated_writes"]) == ("another", "9 TB")
    assert device["user_capacity"] == "960 GB"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dies = 12", "mine.toml: mine has 12 dies on 8 channels"),
        ('"motor.rpm" = 7200', "mine.toml: the device file has no table for motor.rpm"),
    ],
)
def test_what_cannot_be_is_refused(family_folder: Path, text: str, message: str) -> None:
    _with_variant(family_folder, text)
    with pytest.raises(ConfigError) as caught:
        variant_text(variants()["mine"])
    assert str(caught.value) == message


def test_a_family_without_variants_is_refused(family_folder: Path) -> None:
    family_folder.write_text(family_folder.read_text().split("[variants]")[0])
    with pytest.raises(
        ConfigError, match=r"mine\.toml: a family must end with a \[variants\] table"
    ):
        variants()


def test_an_unknown_key_is_refused_by_the_device(family_folder: Path) -> None:
    _with_variant(family_folder, '"controller.write_bufer" = "4 MiB"')
    text = variant_text(variants()["mine"])
    with pytest.raises(ConfigError, match="write_bufer"):
        describe_device(text, "mine.toml")


def test_names_are_unique_and_the_nearest_is_named() -> None:
    names = preset_names()
    assert len(set(names)) == len(names)
    assert not {path.stem for path in PRESETS.glob("*.toml")} & set(variants())
    with pytest.raises(ConfigError, match="unknown simulated drive 'pm863-96'") as caught:
        read_device_file("pm863-96")
    assert caught.value.hint == "did you mean 'pm863-960'?"


def test_rated_writes_are_drive_writes() -> None:
    """Check that the drives of a family have equal ratings, except for ratings with a source.

    Ratings are rounded to whole terabytes.
    """
    for variant in variants().values():
        device = tomllib.loads(variant_text(variant))
        base = tomllib.loads(variant.family.read_text())
        if "rated_writes" not in base or "rated_writes" in base["variants"][variant.name]:
            continue
        size = _native.parse_size
        mine = size(device["rated_writes"]) / size(device["user_capacity"])
        family = size(base["rated_writes"]) / size(base["user_capacity"])
        rounding = 0.501e12 / size(device["user_capacity"])
        assert mine == pytest.approx(family, abs=rounding), variant.name
