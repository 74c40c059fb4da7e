"""Replay of file I/O traces on simulated drives, and comparison of stream assignments.

`columns` passes a trace to the native module, `model` sizes a drive, prepares the trace and replays
it, `advice` compares assignments of writes to streams, `timed_trace` issues a block trace to a real
drive, and `synthetic` generates a small trace for experiments. The simulation itself runs in native
code.
"""
