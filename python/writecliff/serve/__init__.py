"""Served drives, which are simulated drives with data that other programs use in real time.

| file | content |
|---|---|
| `server.py` | start, addresses and shutdown of a server |
| `addresses.py` | parsing, checks and reachability of addresses |
| `control.py` | list of a user's served drives, and power cuts |
| `record.py` | storage of a session in a run directory, and its block trace |
| `session.py` | session as plain data |
| `metrics.py` | Prometheus metrics and their HTTP server |
| `figures.py` | drive snapshots, and figures between two snapshots |
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
