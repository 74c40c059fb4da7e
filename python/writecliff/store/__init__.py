"""Run directories: self-describing run results, robust against kills and full disks.

    checksums.py  the digest inside every file, and JSON documents with a digest
    manifest.py   manifest.json with a run's description, status and machine ("writecliff/run/1")
    record.py     `RoundRecord`, a measured step as passed by procedures
    tables.py     the Parquet tables `rounds`, `intervals` and `histograms`
    files.py      atomic writes, and the lock that gives a run a single writer
    rundir.py     `RunDirectory`, a run on disk; a table has a file per step during the run, and a
                  single file afterwards
    db.py         SQL over the tables; the only module that imports duckdb

`manifest`, `files` and `checksums` do not import large libraries.
"""
