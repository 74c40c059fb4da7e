"""Fit drive parameters to measured figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.options import ListFlag
from writecliff.cli.output import emit_json, latency_text, log, show_list, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from writecliff.published.fit import Estimate, FitResult, Specification
    from writecliff.published.scores import Row

GROUP = "validation and research", 4


def fit(
    name: str | None = None,
    *,
    figures: Path | None = None,
    cross_validate: int | None = None,
    predictions: Path | None = None,
    output: Path | None = None,
    list_: ListFlag = False,
    json: bool = False,
) -> int:
    """Fit free parameters of simulated drives to measured figures.

    Shows how well the figures determine each parameter, and which combinations they leave open.

    Parameters
    ----------
    name
        A name from --list, or a .toml file of drives, parameters and their bounds.
    figures
        A CSV file of measured figures (default: the published figures).
    cross_validate
        Divide the loads into so many folds and predict each from a fit of the others. The errors of
        these predictions are what to expect of loads that nobody has measured.
    predictions
        Write the predictions of --cross-validate as CSV; it must not exist.
    output
        Write the device files with the fitted values into this folder; it must not exist.
    list_
        List the fits behind the presets.
    json
        Print the result as JSON; times in ns, rates in bytes/s.
    """
    from writecliff.published.figures import SHIPPED, read_figures
    from writecliff.published.fit import FITS, Fit, read_specification
    from writecliff.published.fit import cross_validate as predict
    from writecliff.published.predictions import table_of
    from writecliff.store.files import write_atomically

    known = sorted(path.stem for path in FITS.glob("*.toml"))
    if list_:
        specs = [(name, read_specification(FITS / f"{name}.toml")) for name in known]
        fits = [
            {"name": name, "drives": spec.drives, "parameters": [p.key for p in spec.parameters]}
            for name, spec in specs
        ]
        return show_list("fits", fits, as_json=json)
    if name is None:
        raise ConfigError("no fit given", hint="see `writecliff fit --list`")
    path = Path(name) if name.endswith(".toml") else FITS / f"{name}.toml"
    if not path.is_file():
        raise ConfigError.unknown("fit", name, known)
    for path_to_write in (output, predictions):
        if path_to_write is not None and path_to_write.exists():
            raise ConfigError(f"{path_to_write} exists", hint="give another name")
    if predictions is not None and cross_validate is None:
        raise ConfigError("--predictions needs --cross-validate", hint="for example 5")
    spec = read_specification(path)
    found = Fit(spec, read_figures(figures or SHIPPED), log)
    result = found.run()
    held_out = predict(found, cross_validate, log) if cross_validate else None
    if output is not None:
        _write(result, output)
    if predictions is not None and held_out and cross_validate:
        write_atomically(predictions, table_of(path.stem, cross_validate, held_out).encode())
    if json:
        emit_json(_mapping(spec, result, held_out, output))
    else:
        _show(result, held_out)
    return 0


def _write(result: FitResult, folder: Path) -> None:
    from writecliff.store.files import write_atomically

    folder.mkdir(parents=True)
    for drive, text in result.texts.items():
        write_atomically(folder / f"{Path(drive).stem}.toml", text.encode())


def _mapping(
    spec: Specification, result: FitResult, held_out: Sequence[Row] | None, output: Path | None
) -> dict[str, Any]:
    from dataclasses import asdict

    predicted: Sequence[Row | None] = held_out or [None] * len(result.after)
    return {
        "drives": spec.drives,
        "scale": spec.scale,
        "simulations": result.simulations,
        "output": output,
        "parameters": [
            asdict(e) | {"at_bound": e.at_bound, "determined": e.determined}
            for e in result.estimates
        ],
        "unidentifiable": [dict(combination) for combination in result.unidentifiable],
        "errors": _errors(result, held_out),
        "figures": [
            _figure(*rows) for rows in zip(result.before, result.after, predicted, strict=True)
        ],
    }


def _figure(before: Row, after: Row, predicted: Row | None) -> dict[str, Any]:
    f = after.figure
    figure = {
        "device": f.device,
        "baseline": f.baseline or None,
        "load": f.label,
        "metric": f.metric,
        "measured": f.value,
        "simulated": after.simulated,
        "unit": f.unit,
        "error_before_pct": before.error_pct,
        "error_pct": after.error_pct,
    }
    if predicted is not None:
        figure |= {"predicted": predicted.simulated, "error_predicted_pct": predicted.error_pct}
    return figure


def _errors(result: FitResult, held_out: Sequence[Row] | None) -> list[dict[str, Any]]:
    """The errors of each kind of figures: before the fit, after it, and of predictions."""
    from writecliff.published.scores import scores_of

    columns = {"before": result.before, "fitted": result.after, "cross_validated": held_out or ()}
    scores = {name: {s.kind: s for s in scores_of(rows)} for name, rows in columns.items()}
    found = []
    for kind, after in scores["fitted"].items():
        one = {"kind": kind, "figures": after.figures, "statistic": after.statistic}
        one |= {"unit": after.unit}
        for name, by_kind in scores.items():
            one[name] = by_kind[kind].value if kind in by_kind else None
        found.append(one)
    return found


def _show(result: FitResult, held_out: Sequence[Row] | None) -> None:
    rows = [
        (
            e.key,
            e.drive or "all",
            _value(e.start, e.unit),
            _value(e.value, e.unit),
            "-" if e.error_pct is None else f"{e.error_pct:.1f} %",
            _remark(e),
        )
        for e in result.estimates
    ]
    print(table(("parameter", "drive", "was", "found", "standard error", ""), rows))
    for combination in result.unidentifiable:
        parts = ", ".join(f"{share:+.2f} {key}" for key, share in combination)
        print(f"no figure constrains the combination {parts}")
    print()
    _show_figures(result, held_out)
    print()
    errors = [
        (
            one["kind"],
            str(one["figures"]),
            one["statistic"],
            *(_score(one[name], one["unit"]) for name in ("before", "fitted", "cross_validated")),
        )
        for one in _errors(result, held_out)
    ]
    header = ("errors", "figures", "", "before", "fitted", "cross-validated")
    print(table(header, errors))


def _remark(estimate: Estimate) -> str:
    return "at its bound" if estimate.at_bound else "" if estimate.determined else "not determined"


def _show_figures(result: FitResult, held_out: Sequence[Row] | None) -> None:
    predicted: Sequence[Row | None] = held_out or [None] * len(result.after)
    figures = [
        (
            after.figure.device,
            after.figure.label,
            after.figure.metric,
            f"{after.figure.value:g} {after.figure.unit}",
            "-" if after.simulated is None else f"{after.simulated:.5g}",
            _error(before),
            _error(after),
            *([] if one is None else [_error(one)]),
        )
        for before, after, one in zip(result.before, result.after, predicted, strict=True)
    ]
    header = ("drive", "load", "figure", "measured", "simulated", "error before", "error after")
    print(table(header + (("error predicted",) if held_out else ()), figures))


def _score(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g} {unit}"


def _value(number: float, unit: str) -> str:
    """As a device file has it."""
    if unit == "ns":
        return latency_text(number)
    if unit == "bytes/s":
        return f"{units.size(number)}/s"
    return units.size(number) if unit == "bytes" else f"{number:.4g}"


def _error(row: Row) -> str:
    return "-" if row.error_pct is None else f"{row.error_pct:+.1f} %"
