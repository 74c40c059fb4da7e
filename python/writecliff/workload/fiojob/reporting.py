"""What a job asks of its report: the reporting options, resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from writecliff.workload.fiojob.settings import Settings

Unified = Literal["none", "mixed", "both"]

FIO_PERCENTILES = (
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
)  # fmt: skip


@dataclass(frozen=True)
class Reporting:
    """fio's reporting options of one job; the defaults are fio's."""

    description: str = ""
    grouped: bool = False  # group_reporting
    shown: bool = True  # stats
    percentiles: tuple[float, ...] = FIO_PERCENTILES
    clat_percentiles: bool = True
    lat_percentiles: bool = False
    unified: Unified = "none"
    clat: bool = True  # not disable_clat
    lat: bool = True
    samples: bool = True  # not disable_bw_measurement


def reporting(settings: Settings) -> Reporting:
    """Resolve the options. gtod_reduce switches off all latencies and samples."""
    reduced = settings.gtod_reduce
    clat = not (reduced or settings.disable_clat)
    lat = not (reduced or settings.disable_lat)
    return Reporting(
        description=str(settings.description or ""),
        grouped=settings.group_reporting,
        shown=settings.stats,
        percentiles=tuple(sorted(settings.percentile_list)),
        clat_percentiles=settings.clat_percentiles and clat,
        lat_percentiles=settings.lat_percentiles and lat,
        unified=settings.unified_rw_reporting,
        clat=clat,
        lat=lat,
        samples=not (reduced or settings.disable_bw_measurement),
    )
