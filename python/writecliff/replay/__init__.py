"""Traces of file I/O on simulated drives: what streams win.

`columns` brings a trace over the seam, `sizing` makes a drive that the trace fills, `model` lays
the one on the other and replays it, `placement` compares ways to give the writes to streams, and
`synthetic` makes a small trace for trying it out. The simulation itself is native.
"""
