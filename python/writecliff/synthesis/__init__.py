"""Synthetic workloads that behave like a block trace, and comparisons with the trace.

laid_out.py  trace in memory, with its volumes joined into one address range
streams.py   I/O streams, with their operations and sizes
sweeps.py    model of a trace as sweeps through the addresses
fit.py       model of a trace as a state chain, for traces with too many sweeps
result.py    workload file, fio job, and a comparison of the trace's and workload's properties
played.py    trace and workload on the same simulated drives
"""
