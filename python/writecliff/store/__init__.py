"""Run directories: what a run leaves behind, self-describing, safe against kills and full disks.

    checksums.py  the digest that every file carries, and JSON documents with one
    manifest.py   manifest.json: who, what, when, on which machine ("writecliff/run/1")
    record.py     `RoundRecord`: one measured step, as procedures hand it in
    tables.py     the Parquet tables `rounds`, `intervals`, `histograms`: columns, conversion
    files.py      atomic writes, and the lock that gives a run one writer
    rundir.py     `RunDirectory`: all of these together; a table has a file per step while the run
                  is measured, one afterwards
    db.py         SQL over the tables; the only module that imports duckdb

`manifest`, `files` and `checksums` import nothing heavy.
"""
