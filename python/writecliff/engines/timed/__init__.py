"""Open-loop I/O on real targets, where each I/O is issued at its intended time.

`loads` runs, for `FioEngine`, workloads whose jobs all have rates or arrival times. `issuing`,
which trace replay (`writecliff.replay.timed_trace`) shares, controls a native thread that issues
through io_uring (`crates/issuer`). fio runs closed loops, where each I/O waits for a completion.
"""
