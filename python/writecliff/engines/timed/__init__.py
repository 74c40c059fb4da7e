"""Timed I/O on real targets: each I/O is issued at its own time, whatever the drive does meanwhile.

`loads` runs workloads all of whose jobs have rates or times of their own, for `FioEngine`;
`issuing` is what it shares with the replay of traces (`writecliff.replay.timed_trace`): a native
thread that issues through io_uring (`crates/issuer`). Closed loops, where a completion is what the
next I/O waits for, stay with fio.
"""
