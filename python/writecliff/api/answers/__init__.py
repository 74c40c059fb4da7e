"""Types of the JSON objects that commands print with `--json`.

The JSON objects are described only by these types: `reference.py` generates the reference page and
the JSON schemas from the types. A command imports only the module that defines its own output.

    base.py       base classes, and types that several answers use
    tests.py      tests, workloads, suites, sweeps, reports, comparisons
    runs.py       the run store and the dashboard
    choices.py    choices of drives; twins of drives
    devices.py    drives, the cache, this machine
    traces.py     workloads, traces, replays
    captures.py   captures
    served.py     served drives

The output types of lab commands are in `writecliff.lab.commands.answers`.
"""
