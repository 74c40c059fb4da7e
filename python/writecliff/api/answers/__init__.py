"""Answers: the JSON objects that commands print with `--json`, one type per object.

The types are the only description of the objects: `reference.py` makes the reference page and the
JSON schemas from them. A command imports only the module with its own answers.

    base.py       base classes, and types that several answers use
    tests.py      tests, workloads, suites, sweeps, reports, comparisons
    runs.py       the run store and the dashboard
    choices.py    choices of drives; twins of drives
    devices.py    drives, the cache, this machine
    traces.py     workloads, traces, replays
    captures.py   captures
    served.py     served drives

Answers of the lab are in `writecliff.lab.commands.answers`.
"""
