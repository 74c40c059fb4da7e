"""Arbitrary job files: one clear error with its location, or jobs that a drive can run."""

from __future__ import annotations

import random
from pathlib import Path

from writecliff import _native
from writecliff.errors import ConfigError
from writecliff.workload.fiojob import load_fio_job
from writecliff.workload.fiojob.option import Option, Treatment
from writecliff.workload.fiojob.options import all_options
from writecliff.workload.fiojob.values import Context, FioValueError

CAPACITY = 8 << 20
FILES = 400
_VALUES = (
    "0 1 2 7 64 100 4k 64k 1m 512 0x200 50% 100% 3% 4k,8k ,8k 4k-16k 4k/50:8k/50 4k/:8k/ zipf:1.2"
    " zipf zoned:50/10:50/90 zoned_abs:90/1m:10/1m randrw randwrite trim rw write psync libaio none"
    " short fdp poisson 10s 5ms 1h 100us 99:99.9 -1 -4k 1.5g (4k*2) (1 99999999999999999999p none,"
    " :: / , - : 0% $ncpus $pagesize*2 $mb_memory- random mixed both 1,2,3,4 = [x] é 1e5 nan inf"
    " zbd strided 2z zeroes write/60:verify/40 zone_append write_same verify_bytchk_01 zipf:nan zipf:inf zipf:1:2:3 1k- -1k 4k/100000 4k/50%:8k 9223372036854775807"
)
VALUES = _VALUES.split()


def _readable(option: Option) -> list[str]:
    """Generate values that the option alone accepts, so that parsing passes the first line."""
    taken = []
    for value in VALUES:
        try:
            option.read(value, Context())
        except FioValueError:
            continue
        taken.append(value)
    return taken


def test_every_file_is_refused_with_its_line_or_can_be_run(tmp_path: Path) -> None:
    draw = random.Random(20)
    used = (Treatment.HONOURED, Treatment.REPORTING)
    readable = {o.name: _readable(o) for o in all_options() if o.treatment in used}
    file = tmp_path / "any.fio"
    refused = accepted = 0
    for _ in range(FILES):
        lines = ["[global]", "size=1m", "[j]"]
        for name in draw.choices(list(readable), k=draw.randint(1, 5)):
            good = draw.random() > 0.05 and readable[name]
            lines.append(f"{name}={draw.choice(readable[name] if good else VALUES)}")
        file.write_text("\n".join(lines) + "\n")
        try:
            job_file = load_fio_job(file, device_capacity_bytes=CAPACITY)
        except ConfigError as error:
            refused += 1
            first, *more = str(error).split("\n")
            assert first.startswith(f"{file}:"), lines
            assert all(line.startswith(f"  {file}:") for line in more), lines
            continue
        accepted += 1
        for workload in job_file.workloads:
            _native.check_workload(workload.to_json(), CAPACITY, 65535)
    assert refused > FILES / 10 and accepted > FILES / 10
