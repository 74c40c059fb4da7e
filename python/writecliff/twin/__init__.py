"""A twin: the model of a drive that one has, from what was measured on it.

evidence.py     the figures of a run of `procedures.twin`, and what its series show
start.py        a data sheet and a device file from them
structure.py    flash that no rate tells by itself: over-provisioning, dies, the SLC cache
fitting.py      the values of times, the errors of what was kept aside, the device file
device_file.py  the sources of its values, and the errors that go with it
result.py       all of it, kept in the run directory
page.py         the page about it
check.py        is this drive as its twin, or as its data sheet says?
validation.py   twins of simulated drives whose values are hidden
"""
