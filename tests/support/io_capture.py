"""A small I/O capture, as a table of streams, for tests that need one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from writecliff.procedures.registry import procedure_class
from writecliff.procedures.rwsw.capture_options import CaptureOptions

PORTAL = """
name = "portal"
source = "made up"
streams = [
  { access = "random", operation = "read", size = "4 KiB", share = "55 %" },
  { access = "random", operation = "write", size = "8 KiB", share = "30 %" },
  { access = "sequential", operation = "write", size = "64 KiB", share = "15 %" },
]
[[step]]
duration = "60 s"
iops = 500
queue_depth = 6
[[step]]
duration = "60 s"
iops = 900
queue_depth = 12.4
shares = ["80 %", "20 %", "0 %"]
"""


def write_capture(folder: Path) -> Path:
    """Write the capture into `folder`."""
    path = folder / "portal.toml"
    path.write_text(PORTAL)
    return path


def required_options(test: str, folder: Path) -> dict[str, Any]:
    """Return the options that the test requires."""
    takes_capture = issubclass(procedure_class(test).options_type, CaptureOptions)
    return {"capture": str(write_capture(folder))} if takes_capture else {}
