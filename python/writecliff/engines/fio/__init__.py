"""Engine that uses fio to run workloads on a real block device or a regular file."""

from __future__ import annotations

from writecliff.engines.fio.engine import FioEngine

__all__ = ["FioEngine"]
