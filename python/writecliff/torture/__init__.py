"""Power cuts under a program: does it keep what it has acknowledged?

`trial.py` is one cut, from a drive that is ready to the verdict of the check; `attachment.py` and
`file_system.py` put a served drive under a folder; `programs.py` says what runs there. `sqlite.py`,
`postgres.py` and `rocksdb.py` are programs with their checks, which have `ledger.py` in common.
"""

from __future__ import annotations

from writecliff.torture.file_system import KINDS as FILE_SYSTEMS
from writecliff.torture.programs import READY, Program, ready_program
from writecliff.torture.trial import Plan, Trial, Trials

__all__ = ("FILE_SYSTEMS", "READY", "Plan", "Program", "Trial", "Trials", "ready_program")
