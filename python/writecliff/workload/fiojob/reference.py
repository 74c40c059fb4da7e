"""Writes the page docs/reference/fio-options.md from the option tables.

python -m writecliff.workload.fiojob.reference > docs/reference/fio-options.md
"""

from __future__ import annotations

import sys

from writecliff.workload.fiojob.option import Option, Treatment
from writecliff.workload.fiojob.options import all_options

_INTRODUCTION = """\
# fio options in job files

<!-- Made by: python -m writecliff.workload.fiojob.reference -->

What happens to each fio option when a job file runs on a simulated drive. Meanings are those of
fio 3.33 unless the row says otherwise. An option that is not listed is an error that names the
option, the file and the line. See the [guide](../guides/fio-jobs.md) for the rules of job files.
"""

_HEADINGS = {
    Treatment.HONOURED: ("Honoured", "How"),
    Treatment.REPORTING: ("Honoured in the fio-shaped JSON", "How"),
    Treatment.NO_EFFECT: ("Accepted, no effect", "Why"),
    Treatment.REFUSED: ("Refused", "Why"),
}


def markdown() -> str:
    """The page, with one table a treatment."""
    parts = [_INTRODUCTION]
    options = all_options()
    for treatment, (heading, column) in _HEADINGS.items():
        rows = sorted(
            (option for option in options if option.treatment is treatment),
            key=lambda option: option.name,
        )
        parts.append(f"## {heading}\n\n{_table(rows, treatment, column)}")
    return "\n".join(parts)


def _table(rows: list[Option], treatment: Treatment, column: str) -> str:
    """A table; the middle column is the default, or the values that are accepted all the same."""
    middle = {Treatment.REFUSED: "Accepted as", Treatment.NO_EFFECT: None}.get(treatment, "Default")
    titles = ["Option", *([middle] if middle else []), column]
    lines = [" | ".join(titles), " | ".join(["---"] * len(titles))]
    for option in rows:
        cells = [_names(option)]
        if middle == "Default":
            cells.append(f"`{option.default}`" if option.default is not None else "")
        elif middle:
            cells.append(", ".join(f"`{value}`" for value in option.neutral))
        lines.append(" | ".join([*cells, option.text.replace("|", "\\|")]))
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def _names(option: Option) -> str:
    aliases = ", ".join(f"`{alias}`" for alias in option.aliases)
    return f"`{option.name}`" + (f" ({aliases})" if aliases else "")


if __name__ == "__main__":
    sys.stdout.write(markdown())
