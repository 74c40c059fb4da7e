"""Power failure of the machine during a test, which then resumes from its last durable step.

QEMU is killed while a guest writes. The run directory is on an ext4 file system on one of its
drives. Data that were not durable in time are lost with the guest's memory, as on a real machine.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.guest.fetch import Parts
from tests.guest.job import Job
from writecliff.store.rundir import RunDirectory

ROOT = Path(__file__).parents[2]
ROUNDS_BEFORE = 3
WSAT = "--quick --end=time --time-hours=0.008"
SCRIPT = f"""
set -eu
for disk in /sys/block/nvme*; do
    if grep -q QPLAIN01 $disk/device/serial; then store=/dev/${{disk##*/}}; fi
    if grep -q QFDP0001 $disk/device/serial; then drive=/dev/${{disk##*/}}; fi
done
modprobe ext4
[ "$1" != begin ] || mkfs.ext4 -q $store
mkdir -p /run/store
mount -t ext4 $store /run/store
case $1 in
begin) words="--on $drive {WSAT} --output /run/store/run" ;;
resume) words="--resume /run/store/run" ;;
esac
"$PYTHON" -m writecliff test wsat $words --destroy QFDP0001
cp -r /run/store/run /run/out/run
umount /run/store
"""


@pytest.mark.long
@pytest.mark.figure(faults="power failure")
def test_a_run_survives_a_power_failure(parts: Parts, run: Path) -> None:
    script = run / "wsat.sh"
    script.write_text(SCRIPT)
    paths = [str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])]
    more = {"PYTHON": sys.executable, "PYTHONUNBUFFERED": "1", "PYTHONPATH": ":".join(paths)}

    output = ""
    with Job(parts, ["bash", str(script), "begin"], run=run, more=more) as job:
        for line in job.lines():
            output += line
            if len(_rounds(output)) >= ROUNDS_BEFORE:
                break
        job.cut_power()
    assert len(_rounds(output)) >= ROUNDS_BEFORE, output

    again = Job(parts, ["bash", str(script), "resume"], run=run, more=more)
    with again:
        said_again = "".join(again.lines())
        assert again.wait() == 0, said_again
    stored = re.search(r"resuming after (\d+) stored steps", said_again)
    assert stored is not None, said_again
    with RunDirectory.open(again.out / "run") as directory:
        assert directory.status == "complete"
        rows = directory.rounds().to_pylist()
        assert len(directory.manifest.interruptions) == 1
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    # Rounds reported before the power cut were already durable.
    assert _rounds(output) <= {row["round"] for row in rows[: int(stored[1])]}


def _rounds(output: str) -> set[int]:
    """Return the numbers of the rounds in the log."""
    return {int(number) for number in re.findall(r"^round (\d+)  ", output, re.M)}
