"""The run store, which finds, queries, tags and moves thousands of runs under one root.

    location.py    the store to use: --store, WRITECLIFF_STORE, or the current folder
    place.py       the interface of a store (find runs, read and write their files), for folders
                   and, through fsspec, for object stores
    columns.py     the SQL tables and their columns
    catalogue.py   the catalogue, a cache of the run directories
    segments.py    rounds, intervals and histograms of all runs, copied for queries
    queries.py     lists, filters and SQL
    details.py     the catalogue row, figures and manifest of a run
    names.py       resolves user input to run names
    tags.py        the tags of a run, stored in its directory
    delete.py      atomic deletion of runs
    importing.py   imports run directories, suites, archives and fio's JSON output
    fio_json.py    converts fio's JSON output to a run
    difference.py  differences between two runs: set-up, environment, results
    reference.py   generates docs/reference/run-store.md from the columns

The run directories are authoritative. The catalogue is derived from the run directories and can be
deleted without loss. `location`, `place`, `columns`, `queries` and `tags` import neither NumPy nor
Arrow.
"""
