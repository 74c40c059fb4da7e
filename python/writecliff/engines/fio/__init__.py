"""Engine that runs workloads on a real block device or a regular file through fio."""

from __future__ import annotations

from writecliff.engines.fio.engine import FioEngine

__all__ = ["FioEngine"]
