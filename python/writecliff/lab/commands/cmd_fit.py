"""Fit drive parameters to measured figures."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from writecliff import units
from writecliff.cli.options import ListFlag, OutputPath, Scheduler, Whole, on_scheduler
from writecliff.cli.output import JsonFlag, emit_json, latency_text, log, show_list, table
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import Fit, FitList

if TYPE_CHECKING:
    from writecliff.lab.published.cross_validation import CrossValidation, Prediction
    from writecliff.lab.published.fold_fits import FoldFit
    from writecliff.published.figures import PublishedFigure
    from writecliff.published.fit import Estimate, FitResult, Specification
    from writecliff.published.scores import Row

GROUP = "lab", 3
_ALL = "all"


def fit(
    name: str | None = None,
    *,
    figures: Path | None = None,
    cross_validate: Whole = None,
    predictions: OutputPath = None,
    output: OutputPath = None,
    whole_drive: Annotated[bool | None, Parameter(negative="--no-whole-drive")] = None,
    scheduler: Scheduler = None,
    list_: ListFlag = False,
    json: JsonFlag = False,
) -> int:
    """Fit free parameters of simulated drives to measured figures.

    Prints the standard error of each parameter, the combinations that the figures do not determine,
    and measurements that would determine them.

    Parameters
    ----------
    name
        Name from --list, or a .toml file of drives, parameters and parameter bounds. "all" requires
        --cross-validate and predicts the figures of all fits from --list.
    figures
        CSV file of measured figures (default: the published figures).
    cross_validate
        Divide the loads into this many folds, and predict each fold from a fit to the other folds
        that starts at the midpoint of the bounds. The errors of these predictions estimate the
        errors for unmeasured loads.
    predictions
        Write the predictions of --cross-validate to this CSV file, which must not exist.
    output
        Write the device files with the fitted values to this folder, which must not exist.
    whole_drive
        Simulate the fitted drives at full size after the fit (default: if a single drive is
        fitted).
    scheduler
        Dask cluster to run on: local, or the address of a scheduler (tcp://HOST:PORT).
    list_
        List the fits of the presets.
    """
    from writecliff.lab.published.cross_validation import CrossValidation
    from writecliff.lab.published.predict import table_of
    from writecliff.published.figures import SHIPPED, read_figures
    from writecliff.store.files import write_atomically

    if list_:
        return _list(json)
    chosen, specs = _specifications(name)
    _check(name, cross_validate, predictions, output)
    table = read_figures(figures or SHIPPED)
    cross_validation = (
        None if cross_validate is None else CrossValidation(specs, table, cross_validate, chosen)
    )
    with on_scheduler(scheduler):
        result = None if name == _ALL else _fit(specs[chosen[0]], table, whole_drive)
        if result is not None and output is not None:
            _write(result, output)
        predicted = None if cross_validation is None else _predict(cross_validation)
    if predictions is not None and predicted and cross_validate:
        write_atomically(predictions, table_of(cross_validate, predicted).encode())
    if json:
        fitted = {fit_name: specs[fit_name] for fit_name in chosen}
        emit_json(Fit.of(mapping(fitted, result, predicted, output)))
    else:
        show(result, predicted)
    return 0


def _fit(spec: Specification, table: Sequence[PublishedFigure], whole: bool | None) -> FitResult:
    from writecliff.published.fit import Fit

    log("reading the drives")
    return Fit(spec, table, log).run(whole=len(spec.drives) == 1 if whole is None else whole)


def _list(as_json: bool) -> int:
    from writecliff.published.fit import shipped_fits

    fits = [
        {"name": name, "drives": spec.drives, "parameters": [p.key for p in spec.parameters]}
        for name, spec in shipped_fits().items()
    ]
    return show_list(FitList(fits), as_json=as_json)


def _specifications(name: str | None) -> tuple[list[str], dict[str, Specification]]:
    """The requested fits, and all fits that predictions may require.

    A user's fit comes first, because its drives take precedence over those of shipped fits.
    """
    from writecliff.published.fit import read_specification, shipped_fits

    shipped = shipped_fits()
    if name is None:
        raise ConfigError("no fit was specified", hint="see `writecliff lab fit --list`")
    if name == _ALL:
        return list(shipped), shipped
    if not name.endswith(".toml"):
        if name not in shipped:
            raise ConfigError.unknown("fit", name, [*shipped, _ALL])
        return [name], shipped
    path = Path(name)
    spec = read_specification(path)
    others = {n: s for n, s in shipped.items() if not {*s.drives} & {*spec.drives}}
    return [path.stem], {path.stem: spec, **others}


def _check(
    name: str | None, cross_validate: int | None, predictions: Path | None, output: Path | None
) -> None:
    """Reject invalid options before the first simulation."""
    for path in (output, predictions):
        if path is not None and path.exists():
            raise ConfigError(f"{path} already exists", hint="specify another file name")
    if predictions is not None and not predictions.parent.is_dir():
        raise ConfigError(
            f"the folder {predictions.parent} does not exist",
            hint="create the folder, or specify another path",
        )
    if predictions is not None and cross_validate is None:
        raise ConfigError(
            "--predictions requires --cross-validate",
            hint="specify the number of groups, for example --cross-validate 5",
        )
    if name == _ALL and cross_validate is None:
        raise ConfigError(
            "'all' requires --cross-validate",
            hint="specify the name of a single fit, or add --cross-validate",
        )
    if name == _ALL and output is not None:
        raise ConfigError(
            "--output requires a single fit", hint="specify the fit's name instead of 'all'"
        )


def _predict(cross_validation: CrossValidation) -> tuple[Prediction, ...]:
    from writecliff.engines.state_cache import StateCache
    from writecliff.lab.commands.cmd_fit import FoldFitsView
    from writecliff.lab.commands.reproduce_view import ReproduceView

    fold_fits = cross_validation.fold_fits()
    view = FoldFitsView(fold_fits.todo())
    values = fold_fits.run(view.done)
    observer = ReproduceView(cross_validation.loads())
    return cross_validation.measure(
        values, cache=StateCache.of_user(), log=observer.log, observer=observer
    )


def _write(result: FitResult, folder: Path) -> None:
    from writecliff.store.files import write_atomically

    folder.mkdir(parents=True)
    for drive, text in result.texts.items():
        write_atomically(folder / f"{Path(drive).stem}.toml", text.encode())


# -- fit view --------------------------------------------------------------------------------------

# Output of `writecliff lab fit`: progress on stderr, tables and JSON on stdout.

_COLUMNS = ("before", "fitted", "cross_validated")


class FoldFitsView:
    """Logger of a cross-validation's completed fits, with the estimated remaining time."""

    def __init__(self, todo: Sequence[FoldFit]) -> None:
        """Log the number of fits in `todo`."""
        self._lock = Lock()
        self._began_s = time.monotonic()
        self._count = len(todo)
        self._done = 0
        self._share = 0.0
        log(f"{self._count} fits, each omitting one fold")

    def done(self, fold_fit: FoldFit) -> None:
        """Log a completed fit."""
        with self._lock:
            self._done += 1
            self._share += fold_fit.work
            elapsed_s = time.monotonic() - self._began_s
            text = f"[{self._done}/{self._count} fits, {_seconds(elapsed_s)}"
            if self._done < self._count:
                left_s = elapsed_s * (1 / self._share - 1)
                text += f", about {_seconds(left_s)} left"
            again = ", again, with relatives" if fold_fit.again else ""
            log(f"{text}]  {fold_fit.fit} without fold {fold_fit.fold}{again}: done")


def _seconds(value_s: float) -> str:
    return units.duration(round(value_s) * 1e9)


def mapping(
    specs: Mapping[str, Specification],
    result: FitResult | None,
    predicted: Sequence[Prediction] | None,
    output: Path | None,
) -> dict[str, Any]:
    """Return the JSON form, where the fields of a single fit are None if there is no `result`."""
    (spec,) = specs.values() if result else (None,)
    document: dict[str, Any] = {
        "fits": list(specs),
        "drives": [drive for s in specs.values() for drive in s.drives],
        "scale": spec.scale if spec else None,
        "simulations": result.simulations if result else None,
        "output": output,
        "parameters": None,
        "unidentifiable": None,
        "measure_next": None,
    }
    if result is not None:
        document["parameters"] = [
            vars(e) | {"at_bound": e.at_bound, "determined": e.determined} for e in result.estimates
        ]
        document["unidentifiable"] = [dict(combination) for combination in result.unidentifiable]
        document["measure_next"] = [
            {
                "combination": suggestion.combination,
                "device": suggestion.figure.device,
                "load": suggestion.figure.label,
                "metric": suggestion.figure.metric,
                "change_pct": suggestion.change_pct,
            }
            for suggestion in result.next_figures
        ]
    document["errors"] = _errors(result, predicted)
    document["figures"] = [_figure(*rows) for rows in _joined(result, predicted)]
    return document


def _joined(
    result: FitResult | None, predicted: Sequence[Prediction] | None
) -> list[tuple[Row | None, Row | None, Prediction | None]]:
    """Each figure before the fit, after the fit (at full size if simulated) and as predicted.

    Figures that the fit uses come first.
    """
    before = {row.figure: row for row in result.before} if result else {}
    after = {row.figure: row for row in result.whole or result.after} if result else {}
    predictions = {prediction.row.figure: prediction for prediction in predicted or ()}
    figures = dict.fromkeys((*after, *predictions))
    return [(before.get(f), after.get(f), predictions.get(f)) for f in figures]


def _figure(before: Row | None, after: Row | None, predicted: Prediction | None) -> dict[str, Any]:
    f = _of(after, predicted)
    figure = {
        "device": f.device,
        "baseline": f.baseline or None,
        "load": f.label,
        "metric": f.metric,
        "measured": f.value,
        "simulated": after.simulated if after else None,
        "unit": f.unit,
        "error_before_pct": before.error_pct if before else None,
        "error_pct": after.error_pct if after else None,
    }
    if predicted is not None:
        row = predicted.row
        figure |= {
            "kind": row.kind.name,
            "fold": predicted.fold,
            "predicted": row.simulated,
            "error_predicted": row.error,
            "error_predicted_unit": row.kind.unit,
        }
    return figure


def _of(after: Row | None, predicted: Prediction | None) -> PublishedFigure:
    row = after or (predicted.row if predicted else None)
    assert row is not None
    return row.figure


def _errors(
    result: FitResult | None, predicted: Sequence[Prediction] | None
) -> list[dict[str, Any]]:
    """Errors by kind of figure: before the fit, after the fit, and of predictions.

    The figure count refers to the last column that has figures.
    """
    from writecliff.published.scores import scores_of

    rows = (
        result.before if result else (),
        (result.whole or result.after) if result else (),
        [prediction.row for prediction in predicted or ()],
    )
    scores = [{score.kind: score for score in scores_of(column)} for column in rows]
    kinds = dict.fromkeys(kind for by_kind in reversed(scores) for kind in by_kind)
    errors = []
    for kind in kinds:
        by_column = [by_kind.get(kind) for by_kind in scores]
        last = next(score for score in reversed(by_column) if score)
        row: dict[str, Any] = {"kind": kind, "figures": last.figures}
        row |= {"statistic": last.statistic, "unit": last.unit, "goal": last.goal}
        row |= {
            name: score and score.value for name, score in zip(_COLUMNS, by_column, strict=True)
        }
        errors.append(row)
    return errors


def show(result: FitResult | None, predicted: Sequence[Prediction] | None) -> None:
    """Print the parameters, all figures and the errors by kind."""
    if result is not None:
        _show_parameters(result)
        print()
    _show_figures(result, predicted)
    print()
    errors = [
        (
            row["kind"],
            str(row["figures"]),
            row["statistic"],
            *(_score(row[name], row["unit"]) for name in _COLUMNS),
        )
        for row in _errors(result, predicted)
    ]
    print(table(("errors", "figures", "", "before", "fitted", "cross-validated"), errors))


def _show_parameters(result: FitResult) -> None:
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
    suggestions = {suggestion.combination: suggestion for suggestion in result.next_figures}
    for number, combination in enumerate(result.unidentifiable):
        parts = ", ".join(f"{share:+.2f} {key}" for key, share in combination)
        print(f"no figure determines the combination {parts}")
        if (proposed := suggestions.get(number)) is not None:
            print(
                f"  measure next: {proposed.figure.label}, {proposed.figure.metric}; it changes "
                f"by {proposed.change_pct:.1f} % if the combination changes by 10 %"
            )


def _remark(estimate: Estimate) -> str:
    return "at its bound" if estimate.at_bound else "" if estimate.determined else "not determined"


def _show_figures(result: FitResult | None, predicted: Sequence[Prediction] | None) -> None:
    header = ["drive", "load", "figure", "measured"]
    if result is not None:
        header += ["simulated", "error before", "error after"]
    if predicted is not None:
        header += ["fold", "predicted", "error predicted"]
    rows = []
    for before, after, prediction in _joined(result, predicted):
        f = _of(after, prediction)
        cells = [f.device, f.label, f.metric, f"{f.value:g} {f.unit}"]
        if result is not None:
            cells += [_simulated(after), _error_pct(before), _error_pct(after)]
        if predicted is not None:
            row = prediction.row if prediction else None
            cells += [str(prediction.fold) if prediction else "-", _simulated(row), _error(row)]
        rows.append(cells)
    print(table(header, rows))


def _score(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g} {unit}"


def _value(number: float, unit: str) -> str:
    """Format a value in device file notation."""
    if unit == "ns":
        return latency_text(number)
    if unit == "bytes/s":
        return f"{units.size(number)}/s"
    return units.size(number) if unit == "bytes" else f"{number:.4g}"


def _simulated(row: Row | None) -> str:
    return "-" if row is None or row.simulated is None else f"{row.simulated:.5g}"


def _error_pct(row: Row | None) -> str:
    return "-" if row is None or row.error_pct is None else f"{row.error_pct:+.1f} %"


def _error(row: Row | None) -> str:
    """Format an error in the unit of its kind."""
    from writecliff.lab.published.tables import error_text

    return "-" if row is None else error_text(row)
