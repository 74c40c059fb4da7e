"""Traces of the file I/O of programs, with the origin of every write.

`run` runs a command with the preload library, `events` reads the recorded events, `convert` turns
them into a trace, `trace` is the Parquet file, `rules` assigns its writes to streams, `apps` has
ready loads of three databases.
"""
