"""Power cuts under a program: does it keep what it has acknowledged?

`trial.py` is one cut, from a drive that is ready to the verdict of the check; `attachment.py` and
`file_system.py` put a served drive under a folder; `programs.py` says what runs there. `sqlite.py`,
`postgres.py` and `rocksdb.py` are programs with their checks, which have `ledger.py` in common.
Each cut starts two of them, so nothing is imported here that they do not need.
"""
