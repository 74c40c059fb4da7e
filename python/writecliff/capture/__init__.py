"""Traces of programs' file I/O, including the origin of every write.

`run` runs a command with the preload library, `events` reads the recorded events, `convert`
converts events to a trace, `trace` reads and writes the Parquet file, `rules` assigns writes to
streams, and `apps` provides ready-made loads for three databases.
"""
