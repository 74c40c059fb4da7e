"""Power cuts under a program, to check that it keeps all data that it has acknowledged.

`trial.py` is a power cut, from the prepared drive to the result of the check. `attachment.py` and
`file_system.py` mount a served drive; `programs.py` defines the programs that run on it.
`sqlite.py`, `postgres.py` and `rocksdb.py` are programs with checks, which share `ledger.py`. Each
cut starts two processes, so nothing is imported here that they do not need.
"""
