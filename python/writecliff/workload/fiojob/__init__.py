"""fio job files as workloads: `read_fio_job`, or `load_fio_job` for all that a file says.

Every option of a file is honoured, accepted for a stated reason, or refused with file, line and
reason. What is known of each option is in `options` and `options_unused`, from which the reference
page is made (`python -m writecliff.workload.fiojob.reference`).
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
