"""Suites: all tests of an edition on one drive, and what sets of runs have in common.

plan.py      which tests, in which order, with which options
folder.py    `suite.json` and the run directories beside it
children.py  runs of tests in processes of their own, side by side where drives are simulated
runner.py    a suite from its plan to its summary
"""
