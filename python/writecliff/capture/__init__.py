"""Traces of what programs do to files, with the origin of every write.

`run` runs a command with the preload library, `events` reads what the library noted, `convert`
makes the trace of it, `trace` is the Parquet file, `rules` maps its writes to streams, `apps` has
ready recipes for three databases.
"""
