"""Block traces, with readers for all formats, conversion, and workload metrics.

`source` opens a trace (native formats, CSV with custom columns, Parquet), `convert` writes the
trace in another format, and `characterise` computes its metrics. I/Os are passed to the native
module as columns, without loops in Python.
"""
