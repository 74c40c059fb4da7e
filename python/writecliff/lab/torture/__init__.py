"""Power cuts under a program, to check that it preserves all data that it has acknowledged.

`trial.py` runs a power cut, from the prepared drive to the check's result. `attachment.py` and
`file_system.py` mount a served drive, and `programs.py` defines the programs that run on it.
`sqlite.py`, `postgres.py` and `rocksdb.py` are programs with checks, which share `ledger.py`. Each
cut starts two processes, so this package imports only modules that these processes need.
"""
