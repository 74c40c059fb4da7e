"""Run directories: what a run leaves behind, self-describing and safe against kill and full disks.

    manifest.py   manifest.json: who, what, when, with which versions ("writecliff/run/1")
    host.py       the platform that a run was made on, for the manifest
    record.py     `RoundRecord`: one measured step, as procedures hand it in
    tables.py     the Parquet tables `rounds`, `intervals`, `histograms`: columns, conversion
    parts.py      files of a table: one a step while running, one in the end
    files.py      atomic writes, and the lock that gives a run one writer
    rundir.py     `RunDirectory`: all of these together
    catalog.py    listing run directories; reads manifests only
    db.py         SQL over the tables; the only module that imports duckdb

`manifest`, `host`, `files` and `catalog` import nothing heavy.
"""
