"""Block traces: readers of all formats, conversion, and measures of their workload.

`source` opens a trace (native formats, CSV with custom columns, Parquet), `convert` writes it in
another format, `characterise` measures it. I/Os are passed to the native module as columns, without
loops in Python.
"""
