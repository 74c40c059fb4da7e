"""Option tables: complete, consistent, and the reference page generated from them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.workload.fiojob import load_fio_job
from writecliff.workload.fiojob.option import Treatment
from writecliff.workload.fiojob.options import all_options, by_name
from writecliff.workload.fiojob.reference import markdown
from writecliff.workload.fiojob.values import Context

ROOT = Path(__file__).resolve().parents[3]
FIO = shutil.which("fio")
needs_fio = pytest.mark.skipif(FIO is None, reason="fio is not installed: no cross-check with it")


def test_reference_page_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "fio-options.md"
    assert page.read_text() == markdown(), (
        "run: python -m writecliff.workload.fiojob.reference > docs/reference/fio-options.md"
    )


def test_every_default_can_be_read() -> None:
    for option in all_options():
        if option.default is not None:
            option.read(option.default, Context())


def test_every_row_has_a_text_and_every_target_exists() -> None:
    for option in all_options():
        assert option.text and not option.text.endswith("."), option.name
        assert option.key in by_name()
        assert not option.neutral or option.treatment is Treatment.REFUSED


def _listed(*arguments: str) -> set[str]:
    assert FIO is not None
    done = subprocess.run(
        [FIO, *arguments], capture_output=True, text=True, check=True, timeout=WAIT_LIMIT_S
    )
    return set(re.findall(r"^ *([a-z][\w-]*) *: ", done.stdout, re.MULTILINE))


@needs_fio
def test_every_option_of_fio_has_a_row() -> None:
    listed = _listed("--cmdhelp")
    assert len(listed) > 180
    assert listed - set(by_name()) == set()


@needs_fio
@pytest.mark.parametrize("engine", ["libaio", "io_uring", "io_uring_cmd", "pvsync2", "sg"])
def test_every_option_of_the_usual_engines_has_a_row(engine: str) -> None:
    listed = _listed(f"--enghelp={engine}")
    assert listed
    assert listed - set(by_name()) == set()


# Output of `fio --cmdhelp=NAME` from fio 3.33.
ALIASES = {
    "readwrite": "rw", "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "io_limit": "io_size",
    "fill_fs": "fill_device", "fileoffset": "offset", "blocksize": "bs", "blockalign": "ba",
    "blocksize_range": "bsrange", "blocksize_unaligned": "bs_unaligned", "nr_files": "nrfiles",
    "timeout": "runtime", "iomem": "mem", "ratemin": "rate_min", "ratecycle": "rate_cycle",
    "wait_for_previous": "stonewall", "disable_bw": "disable_bw_measurement",
    "ss": "steadystate", "ss_dur": "steadystate_duration", "ss_ramp": "steadystate_ramp_time",
}  # fmt: skip


def test_aliases_are_those_of_fio() -> None:
    assert {alias: by_name()[alias].name for alias in ALIASES} == {
        alias: by_name()[name].name for alias, name in ALIASES.items()
    }


@needs_fio
@pytest.mark.parametrize("alias", ["readwrite", "wait_for_previous", "ss_dur"])
def test_alias_list_is_not_made_up(alias: str) -> None:
    assert FIO is not None
    done = subprocess.run(
        [FIO, f"--cmdhelp={ALIASES[alias]}"], capture_output=True, text=True, check=True, timeout=30
    )
    assert re.search(rf"^ *alias: {alias}$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    "name", [option.name for option in all_options() if option.treatment is Treatment.NO_EFFECT]
)
def test_options_without_effect_have_none(name: str, tmp_path: Path) -> None:
    plain, with_option = tmp_path / "plain.fio", tmp_path / "with.fio"
    plain.write_text("[j]\nsize=1m\n")
    with_option.write_text(f"[j]\nsize=1m\n{name}=1\n")
    jobs = [
        load_fio_job(path, device_capacity_bytes=1 << 30).workloads[0].jobs
        for path in (plain, with_option)
    ]
    assert jobs[0] == jobs[1]
