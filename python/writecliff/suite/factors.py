"""Sweep factors, and the cells that a grid or sample derives from them.

A factor has a list of values or a numeric range. A grid contains every combination of values. A
random sample chooses each factor's value independently and uniformly. A Latin hypercube sample of n
cells contains exactly one value from each of n equal parts of every range (McKay, Beckman, Conover,
"A Comparison of Three Methods for Selecting Values of Input Variables", Technometrics 21(2), 1979).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from writecliff.errors import ConfigError

Method = Literal["random", "latin-hypercube"]
LOGARITHMIC = ":log"
MOST_CELLS = 10_000
_EXAMPLE = "for example --vary write_cache=on,off or --vary queue_depth=1..64:log"


@dataclass(frozen=True)
class Factor:
    """A varied setting, given by the texts of its values in order, or by the range `low` to `high`.

    Samples from a range with whole end points are whole numbers.
    """

    key: str
    values: tuple[str, ...] = ()
    low: float = math.nan
    high: float = math.nan
    logarithmic: bool = False

    @property
    def is_range(self) -> bool:
        """`True` for a range, `False` for a list of values."""
        return not self.values

    def at(self, share: float) -> str:
        """Return the value at the fraction `share` (0 to below 1) of the range or list, as text."""
        if not self.is_range:
            return self.values[int(share * len(self.values))]
        whole = self.low.is_integer() and self.high.is_integer()
        # Every whole number receives an equal portion of the range, including both ends.
        low, high = (self.low, self.high + 1) if whole else (self.low, self.high)
        linear = low + (high - low) * share
        value = low * (high / low) ** share if self.logarithmic else linear
        return str(math.floor(value)) if whole else f"{value:.6g}"


def factor_of(text: str) -> Factor:
    """Parse a factor from `KEY=V1,V2,...` or `KEY=LOW..HIGH[:log]`.

    Raises:
        ConfigError: If the text has a different form, or if the range is empty or not finite.
    """
    key, equals, rest = text.partition("=")
    key = key.strip()
    if not equals or not key or not rest.strip():
        raise ConfigError(f"--vary '{text}' is not KEY=V1,V2,... or KEY=LOW..HIGH", hint=_EXAMPLE)
    if ".." not in rest:
        values = (word.strip() for word in rest.split(","))
        return Factor(key, tuple(dict.fromkeys(word for word in values if word)))
    ends = rest.removesuffix(LOGARITHMIC)
    try:
        low, high = (float(end) for end in ends.split(".."))
    except ValueError:
        raise ConfigError(f"--vary '{text}': the range is not LOW..HIGH", hint=_EXAMPLE) from None
    logarithmic = rest.endswith(LOGARITHMIC)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ConfigError(f"--vary '{text}': {ends} is not an ascending range of finite numbers")
    if logarithmic and low <= 0:
        raise ConfigError(f"--vary '{text}': a logarithmic range must start above 0")
    return Factor(key, (), low, high, logarithmic)


def grid(factors: Sequence[Factor]) -> list[tuple[str, ...]]:
    """Return every combination of values, with the last factor changing fastest.

    Raises:
        ConfigError: If a factor is a range or there are more than `MOST_CELLS` combinations.
    """
    for factor in factors:
        if factor.is_range:
            raise ConfigError(
                f"{factor.key} is a range, but a grid needs a list of values",
                hint="list the key's values, or sample the range with --sample N",
            )
    _check_count(math.prod(len(factor.values) for factor in factors))
    return list(itertools.product(*(factor.values for factor in factors)))


def sample(
    factors: Sequence[Factor], count: int, method: Method, seed: int
) -> list[tuple[str, ...]]:
    """Choose `count` distinct cells by `method`; equal seeds produce equal cells."""
    import numpy as np
    from scipy.stats import qmc

    if count < 1:
        raise ConfigError(f"--sample must be at least 1, not {count}")
    _check_count(count)
    random = np.random.default_rng(seed)
    if method == "latin-hypercube":
        shares = qmc.LatinHypercube(len(factors), rng=random).random(count)
    else:
        shares = random.random((count, len(factors)))
    cells = (
        tuple(factor.at(float(share)) for factor, share in zip(factors, row, strict=True))
        for row in shares
    )
    return list(dict.fromkeys(cells))


def _check_count(count: int) -> None:
    if count > MOST_CELLS:
        raise ConfigError(
            f"{count:,} cells exceed the limit of {MOST_CELLS:,}",
            hint="sample fewer cells with --sample N",
        )
