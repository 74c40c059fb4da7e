"""Twins, which are models of real drives fitted to measurements of these drives.

evidence.py     figures and series from a run of `procedures.twin`
start.py        data sheet and first device file, derived from measurements
structure.py    flash properties that no single rate reveals: over-provisioning, dies, SLC cache
fitting.py      fit of the times, and errors of held-out figures
device_file.py  errors of the twin, and sources of the values in its device file
result.py       twin result, stored in the run directory
page.py         report page
check.py        comparison of a drive with its twin, a model or a data sheet
validation.py   validation with twins of simulated drives whose values are hidden
"""
