"""Fit drive parameters to measured figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from writecliff.cli.options import ListFlag, OutputPath, Scheduler, Whole, on_scheduler
from writecliff.cli.output import JsonFlag, emit_json, log, show_list
from writecliff.errors import ConfigError
from writecliff.lab.commands.answers import Fit, FitList

if TYPE_CHECKING:
    from writecliff.lab.published.cross_validation import CrossValidation, Prediction
    from writecliff.published.figures import PublishedFigure
    from writecliff.published.fit import FitResult, Specification

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

    Shows how well the figures determine each parameter, which combinations they leave open, and
    what to measure to tell those apart.

    Parameters
    ----------
    name
        A name from --list, or a .toml file of drives, parameters and their bounds. "all" with
        --cross-validate: the predictions of all fits from --list.
    figures
        A CSV file of measured figures (default: the published figures).
    cross_validate
        Divide the loads into so many folds and predict each from fits of the others, which begin
        at the middle of their bounds. The errors of these predictions are what to expect of loads
        that nobody has measured.
    predictions
        Write the predictions of --cross-validate as CSV; it must not exist.
    output
        Write the device files with the fitted values into this folder; it must not exist.
    whole_drive
        Simulate the fitted drives at full size at the end (default: if the fit is of one drive).
    scheduler
        Run on Dask: local, or the address of a scheduler (tcp://HOST:PORT).
    list_
        List the fits behind the presets.
    """
    from writecliff.lab.commands import fit_view
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
        own = {one: specs[one] for one in chosen}
        emit_json(Fit.of(fit_view.mapping(own, result, predicted, output)))
    else:
        fit_view.show(result, predicted)
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
    """The fits that are meant, and all that predictions may need. The user's comes first: its
    drives are its own, whatever shipped fits have them."""
    from writecliff.published.fit import read_specification, shipped_fits

    shipped = shipped_fits()
    if name is None:
        raise ConfigError("no fit given", hint="see `writecliff lab fit --list`")
    if name == _ALL:
        return list(shipped), shipped
    if not name.endswith(".toml"):
        if name not in shipped:
            raise ConfigError.unknown("fit", name, [*shipped, _ALL])
        return [name], shipped
    path = Path(name)
    own = read_specification(path)
    others = {n: s for n, s in shipped.items() if not {*s.drives} & {*own.drives}}
    return [path.stem], {path.stem: own, **others}


def _check(
    name: str | None, cross_validate: int | None, predictions: Path | None, output: Path | None
) -> None:
    """Refuse what cannot work before anything runs."""
    for path in (output, predictions):
        if path is not None and path.exists():
            raise ConfigError(f"{path} exists", hint="give another name")
    if predictions is not None and not predictions.parent.is_dir():
        raise ConfigError(f"there is no folder {predictions.parent}", hint="give another name")
    if predictions is not None and cross_validate is None:
        raise ConfigError("--predictions needs --cross-validate", hint="for example 5")
    if name == _ALL and cross_validate is None:
        raise ConfigError("'all' needs --cross-validate", hint="or give the name of one fit")
    if name == _ALL and output is not None:
        raise ConfigError("--output is of one fit", hint="give its name in place of 'all'")


def _predict(cross_validation: CrossValidation) -> tuple[Prediction, ...]:
    from writecliff.engines.state_cache import StateCache
    from writecliff.lab.commands.fit_view import FoldFitsView
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
