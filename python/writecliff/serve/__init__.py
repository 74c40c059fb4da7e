"""Served drives: simulated drives with data that other programs use in real time.

| file | content |
|---|---|
| `server.py` | start, addresses and end of a server |
| `addresses.py` | addresses: parsing, checks, reachability |
| `control.py` | list of a user's served drives, and power cuts of them |
| `record.py` | a session in a run directory, and its block trace |
| `session.py` | a session as plain data |
| `metrics.py` | metrics for Prometheus, and their HTTP server |
| `figures.py` | snapshots of a drive, and figures between two snapshots |
"""

from writecliff.serve.figures import Figures, OperationFigures, PowerCut, Snapshot, difference
from writecliff.serve.server import DriveServer, ServeOptions

__all__ = [
    "DriveServer",
    "Figures",
    "OperationFigures",
    "PowerCut",
    "ServeOptions",
    "Snapshot",
    "difference",
]
