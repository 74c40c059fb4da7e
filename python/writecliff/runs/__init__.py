"""The run store: thousands of runs under one root, found, queried, tagged and moved.

    location.py    which store: --store, WRITECLIFF_STORE, or the current folder
    place.py       what a store must do for the rest: find runs, read and write their files; stores
                   in a folder, and on an object store by fsspec
    columns.py     the tables for SQL and their columns
    catalogue.py   the catalogue, read from run directories: brought up to date, saved, never the
                   truth
    segments.py    rounds, intervals and histograms of all runs, copied for queries
    queries.py     lists, filters and SQL
    details.py     what is known of one run
    names.py       from what a user types to a run
    tags.py        the tags of a run, in its directory
    delete.py      deletion, into nothing half-deleted
    importing.py   run directories, suites, archives and fio's JSON become runs
    fio_json.py    fio's JSON output as a run of a workload
    difference.py  one run against another: set-up, environment, results
    reference.py   docs/reference/run-store.md, from the columns

The directories are the truth. All of the catalogue follows from them: to delete it loses nothing.
`location`, `place`, `columns`, `queries` and `tags` load neither NumPy nor Arrow.
"""
