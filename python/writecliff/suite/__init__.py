"""Suites, sweeps and choices: sets of related runs.

plan.py      tests of a suite, with their order and options
sweep.py     a test or load that is repeated with different settings
factors.py   cells of a sweep, as grids or samples
folder.py    `suite.json` and the run directories next to it
memory.py    memory requirements, which are checked before the first run
children.py  runs in child processes, which run in parallel for simulated drives
runner.py    execution of a set of runs, locally or on a cluster
"""
