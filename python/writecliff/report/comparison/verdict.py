"""Result of a comparison as a sentence of about 25 words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from writecliff.report.comparison.figures import Figure
from writecliff.units import plural


def verdict_of(labels: Sequence[str], figures: Sequence[Figure]) -> str:
    """Return each contender's number of wins, the largest difference, and undecided figures."""
    shared = [figure for figure in figures if figure.noise != "apart"]
    if not shared:
        return "No figure was measured at the same load by two of them."
    count = {noise: sum(f.noise == noise for f in shared) for noise in ("equal", "within")}
    if count["equal"] == len(shared):
        return f"{_joined(labels)} measured the same in {_all(len(shared))}."
    if count["equal"] + count["within"] == len(shared):
        return f"No difference between {_joined(labels)} is significant."
    directed = [figure for figure in shared if figure.best is not None]
    parts = []
    for noise, basis in (("more", ""), ("unknown", ", by single values without intervals")):
        better = [figure for figure in directed if figure.noise == noise]
        if better:
            parts.append(f"{_winners(labels, better, len(shared))}{basis}")
    undirected = [f for f in shared if f.best is None and f.noise in ("more", "unknown")]
    if undirected:
        count_text = plural(len(undirected), "difference")
        parts.append(f"{count_text} {_be(len(undirected))} neither better nor worse")
    if count["within"]:
        count_text = plural(count["within"], "difference")
        parts.append(f"{count_text} {_be(count['within'])} not significant")
    if count["equal"]:
        parts.append(f"{plural(count['equal'], 'figure')} {_be(count['equal'])} equal")
    text = "; ".join(parts)
    is_name = any(character.isdigit() for character in text.split()[0])
    return f"{text if is_name else text[0].upper() + text[1:]}."


def _winners(labels: Sequence[str], figures: Sequence[Figure], total: int) -> str:
    """Return the number of wins of each winner, and the first winner's largest difference."""
    (who, won), *others = _by_winner(figures)
    most = max(won, key=lambda figure: figure.margin_pct or 0)
    over = f" than {labels[most.next_best]}" if len(labels) > 2 else ""
    degree = "better" if len(labels) == 2 else "best"
    text = f"{labels[who]} is {degree} at "
    if total == 1:
        return f"{text}{most.sample.label} ({most.margin_text}{over})"
    text += f"{len(won)} of {total} figures, most at {most.sample.label} ({most.margin_text}{over})"
    return ", ".join([text, *(f"{labels[other]} at {len(theirs)}" for other, theirs in others)])


def _by_winner(figures: Iterable[Figure]) -> list[tuple[int, list[Figure]]]:
    """Return each best contender's figures, starting with the contender that wins most figures."""
    won: dict[int, list[Figure]] = {}
    for figure in figures:
        if figure.best is not None:
            won.setdefault(figure.best, []).append(figure)
    return sorted(won.items(), key=lambda item: -len(item[1]))


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _joined(labels: Sequence[str]) -> str:
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def _all(total: int) -> str:
    return "the one figure in common" if total == 1 else f"all {total} figures"
