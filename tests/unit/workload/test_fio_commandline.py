"""fio's command lines: conversion of their words, compared with fio's own interpretation."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import WAIT_LIMIT_S
from writecliff.errors import ConfigError
from writecliff.workload.fiojob.commandline import read_command_line
from writecliff.workload.model import SECOND_NS

CAPACITY = 1 << 30
FIO = shutil.which("fio")


def test_jobs_globals_and_files_add_up(tmp_path: Path) -> None:
    file = tmp_path / "own.fio"
    file.write_text("[c]\niodepth=2\n[d]\n")
    words = f"--size=1m -ioengine libaio --name=a --iodepth=8 --name b --thread --rw=write {file}"
    command = read_command_line(words.split())
    loaded = command.load(CAPACITY)
    jobs = [[(j.name, j.queue_depth, j.read_pct) for j in w.jobs] for w in loaded.workloads]
    assert jobs == [[("a", 8, 100.0), ("b", 1, 0.0), ("c", 2, 100.0), ("d", 1, 100.0)]]
    assert loaded.global_options == {"size": "1m", "ioengine": "libaio"}
    later = read_command_line([*words.split(), str(file)]).load(CAPACITY)
    assert [len(workload.jobs) for workload in later.workloads] == [4, 2]
    only = read_command_line([*words.split(), "--section=d", "--section", "a"]).load(CAPACITY)
    assert [job.name for workload in only.workloads for job in workload.jobs] == ["a", "d"]


def test_options_of_the_command_itself() -> None:
    words = (
        "--name=x --size=1m --output-format=json,normal --output=r.txt --eta=never --parse-only"
        " --aux-path=logs --readonly --warnings-fatal --runtime=3"
    )
    command = read_command_line(words.split())
    assert command.formats == ("json", "normal")
    assert (command.output, command.folder) == (Path("r.txt"), Path("logs"))
    assert command.parse_only and command.readonly
    (workload,) = command.load(CAPACITY).workloads
    assert workload.jobs[0].duration_ns == 3 * SECOND_NS


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("", "no job was specified", "--name=job1"),
        ("--name=x --sizes=1m", "unknown option '--sizes'", "did you mean 'size'?"),
        ("--name=x --client=h", "--client controls fio on other machines", ""),
        ("--name=x --output-format=terse", "terse is not supported", "normal, json"),
        ("--name=x --output", "--output requires a value", ""),
        ("--name=x --bs=77 --size=1m", "command line: block size 77", "512"),
        ("--name=x --zonemode=zbd --zoneskip=1m", "command line: zoneskip=1048576 is not", ""),
        ("nowhere.fio", "nowhere.fio: no such file", ""),
        ("--name=x --size=1m --section=y", "has no job section [y]", ""),
    ],
)
def test_what_cannot_be_is_refused(words: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_command_line(words.split()).load(CAPACITY)
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


@pytest.mark.skipif(FIO is None, reason="fio is not installed: no cross-check with it")
def test_fio_understands_the_same_jobs(tmp_path: Path) -> None:
    file = tmp_path / "own.fio"
    file.write_text("[global]\nbs=8k\n[c]\nnumber_ios=5\n[d]\nstonewall\n")
    words = ["--size=64k", "--ioengine=null", "--name=a", "-bs=16k", "--name", "b", "--rw", "write",
             str(file)]  # fmt: skip
    assert FIO is not None
    done = subprocess.run(
        [FIO, "--output-format=json", *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_LIMIT_S, check=True,
    )  # fmt: skip
    document = json.loads(done.stdout[done.stdout.index("{") :])
    loaded = read_command_line(words).load(CAPACITY)
    # fio 3.36 and later versions list options that take no value as "".
    ours = [
        (
            section.name,
            section.group_id,
            {key: text for key, text in dict(section.options).items() if text},
        )
        for step in loaded.steps
        for section in step.sections
    ]
    assert ours == [
        (
            job["jobname"],
            job["groupid"],
            {key: text for key, text in job["job options"].items() if text and key != "name"},
        )
        for job in document["jobs"]
    ]
    ios = [
        step.workload.jobs[index].ios
        or (step.workload.jobs[index].volume_bytes or 0)
        // step.workload.jobs[index].block_sizes[0].bytes
        for step in loaded.steps
        for section in step.sections
        for index in section.jobs
    ]
    assert ios == [job["read"]["total_ios"] + job["write"]["total_ios"] for job in document["jobs"]]
