"""From a block trace to a workload that behaves like it, and the proof that it does.

`laid_out` puts a trace's volumes into one range; `arrivals` and `places` fit the parts of an
`IoModel`, which a job of a workload draws its I/Os from; `compare` holds its measures against
those of the trace, `played` both on a simulated drive. `fio_job` says as much of it as fio can.
"""
