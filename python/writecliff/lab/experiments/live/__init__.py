"""Experiments that run real applications on a served drive, with streams off and on.

The application's files are on several file systems of one simulated drive, each with a separate
address range. In trials with streams, each file system writes through the export for its stream.
In trials without streams, all file systems write through the same export. All other conditions are
equal: layout, drive, load, and attachment of the drive.

| file | content |
|---|---|
| `model.py` | layouts, applications, measurements, and statistics of repeated trials |
| `machine.py` | the drive, its file systems, and the session in its run directory |
| `trials.py` | the trials of an experiment, in alternating order |
| `rocksdb.py`, `rocksdb_client.py` | RocksDB, and its client |
| `cassandra.py` | Cassandra, and its client |
| `page.py` | JSON, tables and page |
"""
