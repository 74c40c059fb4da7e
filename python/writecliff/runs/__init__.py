"""Run store, which finds, queries, tags and moves thousands of runs under one root.

    location.py    location of the store: --store, WRITECLIFF_STORE, or the current folder
    place.py       store interface to find runs and to read and write their files, for folders and,
                   through fsspec, for object stores
    columns.py     SQL tables and their columns
    catalogue.py   catalogue, a cache of the run directories
    segments.py    rounds, intervals and histograms of all runs, copied for queries
    queries.py     lists, filters and SQL
    details.py     a run's catalogue row, figures and manifest
    names.py       resolution of user input to run names
    tags.py        tags, stored in each run's directory
    delete.py      atomic deletion of runs
    importing.py   import of run directories, suites, archives and fio's JSON output
    fio_json.py    conversion of fio's JSON output to a run
    difference.py  differences between two runs in set-up, environment and results
    reference.py   generator of docs/reference/run-store.md

The run directories are authoritative. The catalogue is derived from the run directories and can be
deleted without data loss. `location`, `place`, `columns`, `queries` and `tags` import neither NumPy
nor Arrow.
"""
