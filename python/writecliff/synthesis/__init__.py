"""Synthetic workloads that behave like a block trace, and their comparison with the trace.

laid_out.py  a trace in memory, its volumes joined into one range of addresses
streams.py   I/O streams: operations and sizes
sweeps.py    model of a trace as sweeps through the addresses
fit.py       model of a trace as a chain of states, for traces with too many sweeps
result.py    workload file, fio job, and measures of trace and workload side by side
played.py    trace and workload on the same simulated drives
"""
