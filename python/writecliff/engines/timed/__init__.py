"""Open-loop I/O on real targets: each I/O is issued at its intended time.

`loads` runs workloads whose jobs all have rates or arrival times, for `FioEngine`. `issuing`, which
the replay of traces (`writecliff.replay.timed_trace`) shares, controls a native thread that issues
through io_uring (`crates/issuer`). fio runs closed loops, in which each I/O waits for a completion.
"""
