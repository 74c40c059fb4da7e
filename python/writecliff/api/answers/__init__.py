"""Answers: the JSON objects that commands print with `--json`, a type for each.

The types are the only description of the objects: `reference.py` makes the reference page and the
JSON schemas of them. Modules are loaded by the commands that answer with them.

    base.py       what all answers share; types that several use
    tests.py      tests, workloads, suites, sweeps, reports, comparisons
    runs.py       the run store and the dashboard
    choices.py    which drive; twins of drives
    devices.py    drives, the cache, this machine
    traces.py     workloads, traces, replays
    captures.py   captures
    served.py     served drives

Answers of the lab are in `writecliff.lab.commands.answers`.
"""
