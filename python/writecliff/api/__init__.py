"""The commands as Python functions: tests, workloads, suites, comparisons, traces, the run store.

The command line calls these functions, so a script and a shell get the same results. Functions that
run a measurement return the measured object. Tables are Arrow tables that notebooks display
(`tables.py`); `to_pandas()` and `to_polars()` convert them.

    runs.py      a run: measured, resumed, or opened
    plans.py     the plan and cost of a run
    outcome.py   limits, baselines, and the file for CI systems
    sets.py      suites, sweeps, comparisons, reports
    choose.py    the choice of a drive for a load
    store.py     the run store
    tables.py    tables and figures
    traces.py    captures, replays, stream advice
    twin.py      twins of drives
    fio.py       fio command lines
    machine.py   this machine: checks, cache, attached drives
    block_traces.py  traces of other programs: conversion, characterisation, synthesis
    answers/     the output of commands with --json
"""

from writecliff.api.block_traces import characterise_trace as characterise_trace
from writecliff.api.block_traces import convert_trace as convert_trace
from writecliff.api.block_traces import replay_timed as replay_timed
from writecliff.api.block_traces import synthesise_trace as synthesise_trace
from writecliff.api.choose import Choice as Choice
from writecliff.api.choose import choose_drive as choose_drive
from writecliff.api.runs import Run as Run
from writecliff.api.runs import execute as execute
from writecliff.api.runs import load_run as load_run
from writecliff.api.runs import new_path as new_path
from writecliff.api.runs import opening_of as opening_of
from writecliff.api.runs import resume_run as resume_run
from writecliff.api.runs import run_test as run_test
from writecliff.api.runs import run_workload as run_workload
from writecliff.api.sets import Suite as Suite
from writecliff.api.sets import compare as compare
from writecliff.api.sets import run_members as run_members
from writecliff.api.sets import run_suite as run_suite
from writecliff.api.sets import run_sweep as run_sweep
from writecliff.api.sets import sweep_base as sweep_base
from writecliff.api.sets import write_page as write_page
from writecliff.api.sets import write_report as write_report
from writecliff.api.store import Store as Store
from writecliff.api.store import open_store as open_store
from writecliff.api.tables import Figures as Figures
from writecliff.api.tables import Table as Table
from writecliff.api.traces import Replay as Replay
from writecliff.api.traces import advise_streams as advise_streams
from writecliff.api.traces import capture_device as capture_device
from writecliff.api.traces import capture_program as capture_program
from writecliff.api.traces import capture_stack as capture_stack
from writecliff.api.traces import replay_trace as replay_trace
from writecliff.api.twin import make_twin as make_twin
