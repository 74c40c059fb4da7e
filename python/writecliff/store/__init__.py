"""Run directories: what a run leaves behind, self-describing, safe against kills and full disks.

    checksums.py  the digest that every file carries, and JSON documents with one
    manifest.py   manifest.json: who, what, when, with which versions ("writecliff/run/1")
    host.py       the platform that a run was made on, for the manifest
    record.py     `RoundRecord`: one measured step, as procedures hand it in
    tables.py     the Parquet tables `rounds`, `intervals`, `histograms`: columns, conversion
    parts.py      files of a table: one per step while the run goes on, one afterwards
    files.py      atomic writes, and the lock that gives a run one writer
    rundir.py     `RunDirectory`: all of these together
    db.py         SQL over the tables; the only module that imports duckdb

`manifest`, `host`, `files` and `checksums` import nothing heavy.
"""
