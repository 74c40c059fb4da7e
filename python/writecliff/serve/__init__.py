"""A simulated drive that other programs use: served in real time, with its data.

| file | content |
|---|---|
| `server.py` | opening, addresses, ending |
| `addresses.py` | which addresses NVMe/TCP takes, who can reach one, and what one means |
| `control.py` | finding the drives that a user serves, and cutting their power |
| `record.py` | a session in a run directory, and its block trace |
| `session.py` | a session as plain data |
| `metrics.py` | figures for Prometheus, and their HTTP server |
| `figures.py` | what the drive has done: of the last moment, and in all |
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
