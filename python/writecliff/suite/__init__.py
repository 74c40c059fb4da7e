"""Suites, sweeps and choices: sets of related runs.

plan.py      tests of a suite, their order and options
sweep.py     a test or load repeated with different settings
factors.py   the cells of a sweep: grids and samples
folder.py    `suite.json` and the run directories beside it
memory.py    memory requirements, checked before the first run
children.py  runs in child processes, side by side where drives are simulated
runner.py    the execution of a set, locally or on a cluster
"""
