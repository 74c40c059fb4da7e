"""fio job files as workloads: `read_fio_job`, or `load_fio_job` for all details of a file.

Each option in a file is implemented, accepted without effect, or rejected with file, line and
reason. `options` describes all options and generates the reference page (`python -m
writecliff.workload.fiojob.reference`).
"""

from __future__ import annotations

from writecliff.workload.fiojob.steps import (
    FioJobFile,
    FioSection,
    FioStep,
    load_fio_job,
    read_fio_job,
)

__all__ = ["FioJobFile", "FioSection", "FioStep", "load_fio_job", "read_fio_job"]
