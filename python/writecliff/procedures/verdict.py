"""The steady-state decision after a round, for every tracking variable (PTS 2.0.2, 2.1.24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from writecliff.procedures.model import MEASUREMENT_WINDOW, SteadyVerdict, TrackingVariable

DATA_SHARE = 0.20
SLOPE_SHARE = 0.10


def judge(
    variables: Sequence[TrackingVariable], tracking: Mapping[str, Sequence[float]]
) -> tuple[SteadyVerdict, ...]:
    """One verdict a variable over its last five rounds; empty before the fifth."""
    verdicts = []
    for variable in variables:
        values = tracking[variable.name]
        if len(values) < MEASUREMENT_WINDOW:
            return ()
        window = values[-MEASUREMENT_WINDOW:]
        last = len(values)
        average = sum(window) / len(window)
        data = max(window) - min(window)
        middle = (len(window) - 1) / 2
        spread = sum((i - middle) ** 2 for i in range(len(window)))
        gradient = sum((i - middle) * y for i, y in enumerate(window)) / spread
        slope = abs(gradient) * (len(window) - 1)
        verdicts.append(
            SteadyVerdict(
                variable=variable.name,
                unit=variable.unit,
                rounds=tuple(range(last - len(window) + 1, last + 1)),
                steady=data <= DATA_SHARE * average and slope <= SLOPE_SHARE * average,
                average=average,
                data_excursion=data,
                data_allowed=DATA_SHARE * average,
                slope_excursion=slope,
                slope_allowed=SLOPE_SHARE * average,
            )
        )
    return tuple(verdicts)
