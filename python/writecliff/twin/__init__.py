"""Twins: models of real drives that are fitted to measurements of the drives.

evidence.py     figures and series of a run of `procedures.twin`
start.py        data sheet and first device file, from measurements
structure.py    flash that no single rate reveals: over-provisioning, dies, the SLC cache
fitting.py      fit of the times, and errors of held-out figures
device_file.py  sources of the values in the device file, and its errors
result.py       result, stored in the run directory
page.py         report page
check.py        comparison of a drive with its twin, a model or a data sheet
validation.py   twins of simulated drives whose values are hidden
"""
