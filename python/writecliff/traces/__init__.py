"""Block traces of other programs: read in any format, converted, and what they say of a workload.

`source` opens a trace (native formats, a CSV of one's own, Parquet), `convert` writes it in another
format, `characterise` measures it. I/Os cross the seam as columns; nothing here loops over them.
"""
