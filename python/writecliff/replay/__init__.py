"""Replays traces of file I/O on simulated drives and compares stream assignments.

`columns` brings a trace over the seam, `sizing` makes a drive that the trace fills, `model`
prepares and replays it, `advice` compares assignments of writes to streams, and `synthetic` makes a
small trace to try it out. The simulation itself is native.
"""
