"""The answer of a comparison: one sentence, or a few for many figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from writecliff.report.comparison.figures import Figure, percent
from writecliff.report.comparison.groups import LONG_LIST, Group, group_names, groups_of
from writecliff.report.headline import value_text
from writecliff.units import plural


def verdict_of(labels: Sequence[str], figures: Sequence[Figure]) -> str:
    """Return the best contender by figure, the margin, and whether it is more than noise."""
    other_loads = [figure for figure in figures if figure.noise == "apart"]
    figures = [figure for figure in figures if figure.noise != "apart"]
    total = len(figures)
    clear = [figure for figure in figures if figure.noise == "more" and figure.best is not None]
    neither = [figure for figure in figures if figure.noise == "more" and figure.best is None]
    noisy = [figure for figure in figures if figure.noise == "within"]
    single = [figure for figure in figures if figure.noise == "unknown"]
    equal = [figure for figure in figures if figure.noise == "equal"]
    if not figures:
        return (
            "No figure was measured at the same load by two of them: "
            f"{other_loads[0].sample.label} and others differ in load."
        )
    if len(equal) == total:
        return f"{_joined(labels)} measured the same in {_all(total)}."
    if total > LONG_LIST:
        return _summary(labels, figures)
    parts = []
    if clear:
        sentences = [f"{labels[who]} is {_degree(labels)} at {_won(labels, won, total)}"
                for who, won in _by_winner(clear)]  # fmt: skip
        parts.append(f"{', '.join(sentences)}, by more than noise")
    if neither:
        names = ", ".join(figure.sample.label for figure in neither)
        parts.append(f"{names}: different by more than noise, and neither direction is better")
    if noisy:
        largest = max(noisy, key=lambda figure: figure.margin_pct or 0)
        most = percent(largest.margin_pct or 0)
        what = _quantity(len(noisy), total, parts)
        parts.append(f"{what} no more than noise (at most {most}, {largest.sample.label})")
    if single:
        parts.append(_single(labels, single, total, parts))
    if equal:
        parts.append(f"{plural(len(equal), 'figure')} {'is' if len(equal) == 1 else 'are'} equal")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


_MOST_GROUPS = 2  # maximum number of groups named for each contender


def _summary(labels: Sequence[str], figures: Sequence[Figure]) -> str:
    """Return the answer for a long list of figures.

    It gives the number of figures at which each contender is better, the groups in which it is most
    often better, and whether the differences are more than noise.
    """
    total, groups = len(figures), groups_of(figures)
    won = {who: sum(len(group.won(who)) for group in groups) for who in range(len(labels))}
    order = sorted((who for who in won if won[who]), key=lambda who: -won[who])
    equal = sum(group.equal for group in groups)
    rest = total - sum(won.values()) - equal
    counts = [f"{labels[who]} {'at' if n else f'is {_degree(labels)} at'} {won[who]}"
              for n, who in enumerate(order)]  # fmt: skip
    counts += [f"{equal} {'is' if equal == 1 else 'are'} equal"] if equal else []
    counts += [f"{rest} are undecided"] if rest else []
    sentences = [f"Of {total} figures {_joined(counts)}." if len(counts) > 1
            else f"Of {total} figures {counts[0]}."]  # fmt: skip
    sentences += filter(None, (_ahead(labels[who], who, groups) for who in order))
    decided = [figure for group in groups for figure in group.decided]
    single = sum(figure.noise == "unknown" for figure in decided)
    if single:
        which = "These" if single == len(decided) else f"{single} of these"
        sentences.append(f"{which} are single values: it is unknown if they differ by more than "
                    "noise.")  # fmt: skip
    elif decided:
        sentences.append("All of these differ by more than noise.")
    return " ".join(sentences)


def _ahead(label: str, who: int, groups: Sequence[Group]) -> str:
    """Return the groups in which a contender is better more than twice as often as any other.

    Empty if there are none.
    """
    clear = []
    for group, name in zip(groups, group_names(groups), strict=True):
        mine = len(group.won(who))
        most = max(len(group.won(other)) for other in range(group.contenders) if other != who)
        if mine > 2 * most:
            clear.append((mine, f"{name} ({mine} of {len(group.figures)})"))
    clear.sort(key=lambda item: -item[0])
    texts = [text for _, text in clear[:_MOST_GROUPS]]
    return f"{label} leads most clearly in {' and '.join(texts)}." if texts else ""


def _single(
    labels: Sequence[str], single: Sequence[Figure], total: int, before: Sequence[str]
) -> str:
    """Return the clause about figures whose values have no interval."""
    undirected = [figure for figure in single if figure.best is None]
    directed = [figure for figure in single if figure.best is not None]
    sentences = [f"{labels[who]} is {_degree(labels)} at {_won(labels, won, total)}"
            for who, won in _by_winner(directed)]  # fmt: skip
    if undirected:
        names = ", ".join(figure.sample.label for figure in undirected)
        sentences.append(f"{names} {'differs' if len(undirected) == 1 else 'differ'}")
    which = "of single values" if before else "by single values"
    return f"{which}, {', '.join(sentences)}: it is unknown if that is more than noise"


def _by_winner(figures: Iterable[Figure]) -> list[tuple[int, list[Figure]]]:
    """Return the figures of each best contender, the contender with most figures first."""
    won: dict[int, list[Figure]] = {}
    for figure in figures:
        if figure.best is not None:
            won.setdefault(figure.best, []).append(figure)
    return sorted(won.items(), key=lambda item: -len(item[1]))


def _won(labels: Sequence[str], won: Sequence[Figure], total: int) -> str:
    """Return the number of figures at which a contender is better, and the largest difference."""
    most = max(won, key=lambda figure: figure.margin_pct or 0)
    best, other = (value_text(most.value_of(number)) for number in most.order[:2])
    over = f" than {labels[most.next_best]}" if len(labels) > 2 else ""
    figures = f"{best} against {other} {most.sample.unit}".strip()
    largest = f"{most.sample.label} ({most.margin_text}{over}: {figures})"
    if len(won) == 1:
        return largest
    margins = [figure.margin_pct for figure in won if figure.margin_pct is not None]
    ends = dict.fromkeys(percent(pick(margins)) for pick in (min, max)) if margins else ()
    spread = f" by {' to '.join(ends)}" if ends else ""
    return f"{len(won)} of {total} figures{spread}, most at {largest}"


def _degree(labels: Sequence[str]) -> str:
    return "better" if len(labels) == 2 else "best"


def _joined(labels: Sequence[str]) -> str:
    return f"{', '.join(labels[:-1])} and {labels[-1]}"


def _all(total: int) -> str:
    return "the one figure in common" if total == 1 else f"all {total} figures"


def _quantity(number: int, total: int, before: Sequence[str]) -> str:
    """Return the subject of a clause: "3 more figures differ by", "all 7 figures differ by"."""
    if number == total:
        return f"{_all(total)} {'differs' if total == 1 else 'differ'} by"
    verb = "differs" if number == 1 else "differ"
    if before:
        return f"{plural(number, 'more figure')} {verb} by"
    return f"{number} of {plural(total, 'figure')} {verb} by"
