"""Generator of the page docs/reference/fio-options.md from the option tables.

python -m writecliff.workload.fiojob.reference > docs/reference/fio-options.md
"""

from __future__ import annotations

import sys

from writecliff.workload.fiojob.option import Treatment
from writecliff.workload.fiojob.options import all_options

_INTRODUCTION = """\
# fio options in job files

<!-- Made by: python -m writecliff.workload.fiojob.reference -->

Treatment of each fio option in a job file that runs on a simulated drive. Options have the meaning
of fio 3.33 unless the row says otherwise. An option that is not listed causes an error that names
the option, the file and the line. The [guide](../guides/fio-jobs.md) explains job files.
"""

_HEADINGS = {
    Treatment.HONOURED: ("Supported", "Default", "Meaning"),
    Treatment.REPORTING: ("Supported in the fio JSON", "Default", "Meaning"),
    Treatment.NO_EFFECT: ("Accepted, no effect", None, "Reason"),
    Treatment.REFUSED: ("Refused", "Accepted value", "Reason"),
}


def markdown() -> str:
    """Return the page, with a table per treatment."""
    parts = [_INTRODUCTION]
    for treatment, (heading, middle, last) in _HEADINGS.items():
        rows = [("Option", middle, last), ("---", middle and "---", "---")]
        for option in sorted(all_options(), key=lambda option: option.name):
            if option.treatment is treatment:
                values = option.neutral or ([option.default] if option.default is not None else [])
                names = _code(option.name) + (f" ({_code(*option.aliases)})" * bool(option.aliases))
                rows.append((names, middle and _code(*values), option.text.replace("|", "\\|")))
        lines = (" | ".join(cell for cell in row if cell is not None) for row in rows)
        parts.append(f"## {heading}\n\n" + "".join(f"| {line} |\n" for line in lines))
    return "\n".join(parts)


def _code(*values: str) -> str:
    return ", ".join(f"`{value}`" for value in values)


if __name__ == "__main__":
    sys.stdout.write(markdown())
