"""Run directories: self-describing results of runs, robust against kills and full disks.

    checksums.py  the digest inside every file, and JSON documents with a digest
    manifest.py   manifest.json: description, status and machine of a run ("writecliff/run/1")
    record.py     `RoundRecord`: a measured step, as procedures pass it
    tables.py     the Parquet tables `rounds`, `intervals`, `histograms`: columns, conversion
    files.py      atomic writes, and the lock that gives a run a single writer
    rundir.py     `RunDirectory`: all of these; a table has a file per step during the run, and a
                  single file afterwards
    db.py         SQL over the tables; the only module that imports duckdb

`manifest`, `files` and `checksums` do not import large libraries.
"""
