"""Types of the native module. The public API is pure Python; nothing outside this package imports it."""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
import numpy.typing as npt

class NativeConfigError(ValueError): ...

@final
class Quantile:
    """A quantile of a histogram: an upper bound that never exceeds the maximum, with its evidence."""

    @property
    def q(self) -> float: ...
    @property
    def value_ns(self) -> int | None:
        """Upper bound of the bucket of the nearest-rank sample; None: not enough samples."""
    @property
    def count(self) -> int: ...
    @property
    def low_ns(self) -> int | None:
        """Order-statistic confidence interval (95 %), lower end."""
    @property
    def high_ns(self) -> int | None:
        """Upper end; None if the sample is too small to bound it."""

@final
class Histogram:
    """Log-linear latency histogram: exact below 128 ns, then 64 buckets per power of two (1/64 wide).

    The layout is that of fio's json+ bins, without their 17 s ceiling. Counts are 64 bit.
    """

    def __init__(self) -> None: ...
    def record(self, value_ns: int, count: int = 1) -> None: ...
    def merge(self, other: Histogram) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def min_ns(self) -> int | None: ...
    @property
    def max_ns(self) -> int | None: ...
    @property
    def mean_ns(self) -> float | None: ...
    @property
    def sd_ns(self) -> float | None: ...
    def quantile(self, q: float) -> Quantile: ...
    def buckets(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """(lower_ns inclusive, upper_ns inclusive, count) of the non-empty buckets, ascending."""
    @staticmethod
    def from_buckets(
        midpoints_ns: npt.NDArray[np.uint64],
        counts: npt.NDArray[np.uint64],
        min_ns: int,
        max_ns: int,
        mean_ns: float,
        sd_ns: float,
    ) -> Histogram:
        """From (value, count) pairs such as fio's json+ bins, each value anywhere in its bucket, and
        the exact moments that came with them."""
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> Histogram: ...
