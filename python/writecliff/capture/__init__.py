"""Traces of the file I/O of programs, with the origin of every write.

`run` runs a command with the preload library, `events` reads the recorded events, `convert`
converts them into a trace, `trace` reads and writes the Parquet file, `rules` assigns its writes to
streams, and `apps` provides ready-made loads of three databases.
"""
