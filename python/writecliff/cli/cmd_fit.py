"""Fit drive parameters to measured figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from writecliff import units
from writecliff.cli.options import ListFlag
from writecliff.cli.output import emit_json, latency_text, log, show_list, table
from writecliff.errors import ConfigError

if TYPE_CHECKING:
    from writecliff.published.fit import FitResult, Specification
    from writecliff.published.scores import Row

GROUP = "validation and research", 4


def fit(
    name: str | None = None,
    *,
    figures: Path | None = None,
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
    output
        Write the device file of the first drive with the fitted values; it must not exist.
    list_
        List the fits behind the presets.
    json
        Print the result as JSON; times in ns, rates in bytes/s.
    """
    from writecliff.published.figures import SHIPPED, read_figures
    from writecliff.published.fit import FITS, fitted_text, read_specification
    from writecliff.published.fit import fit as run_fit

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
    if output is not None and output.exists():
        raise ConfigError(f"{output} exists", hint="name another file")
    spec = read_specification(path)
    measured = read_figures(figures or SHIPPED)
    log(f"{len(spec.parameters)} parameters on {len(spec.drives)} drives: takes some minutes")
    result = run_fit(spec, measured, log)
    if output is not None:
        _write(spec, fitted_text, result, output)
    if json:
        emit_json(_mapping(spec, result, output))
    else:
        _show(result)
    return 0


def _write(spec: Specification, change: Any, result: FitResult, output: Path) -> None:
    from writecliff.devices import read_device_file
    from writecliff.store.files import write_atomically

    text, _ = read_device_file(spec.drives[0])
    write_atomically(output, change(text, result).encode())


def _mapping(spec: Specification, result: FitResult, output: Path | None) -> dict[str, Any]:
    from dataclasses import asdict

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
        "figures": [
            _figure(before, after)
            for before, after in zip(result.before, result.after, strict=True)
        ],
    }


def _figure(before: Row, after: Row) -> dict[str, Any]:
    f = after.figure
    return {
        "device": f.device,
        "load": f.label,
        "metric": f.metric,
        "measured": f.value,
        "simulated": after.simulated,
        "unit": f.unit,
        "error_before_pct": before.error_pct,
        "error_pct": after.error_pct,
    }


def _show(result: FitResult) -> None:
    rows = [
        (
            e.key,
            _value(e.start, e.unit),
            _value(e.value, e.unit),
            "-" if e.error_pct is None else f"{e.error_pct:.1f} %",
            "at its bound" if e.at_bound else "" if e.determined else "not determined",
        )
        for e in result.estimates
    ]
    print(table(("parameter", "was", "found", "standard error", ""), rows))
    for combination in result.unidentifiable:
        parts = ", ".join(f"{share:+.2f} {key}" for key, share in combination)
        print(f"no figure constrains the combination {parts}")
    print()
    figures = [
        (
            after.figure.device,
            after.figure.label,
            after.figure.metric,
            f"{after.figure.value:g} {after.figure.unit}",
            "-" if after.simulated is None else f"{after.simulated:.5g}",
            _error(before),
            _error(after),
        )
        for before, after in zip(result.before, result.after, strict=True)
    ]
    header = ("drive", "load", "figure", "measured", "simulated", "error before", "error after")
    print(table(header, figures))


def _value(number: float, unit: str) -> str:
    """As a device file has it."""
    if unit == "ns":
        return latency_text(number)
    if unit == "bytes/s":
        return f"{units.size(number)}/s"
    return units.size(number) if unit == "bytes" else f"{number:.4g}"


def _error(row: Row) -> str:
    return "-" if row.error_pct is None else f"{row.error_pct:+.1f} %"
