"""`--baseline`: what was just measured, beside an earlier run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from writecliff.report.comparison import Comparison
    from writecliff.report.comparison.judgement import Judgement

PAGE_NAME = "comparison.html"


@dataclass(frozen=True)
class AgainstBaseline:
    """The comparison of a run with its baseline, and its page."""

    found: Comparison
    page: Path

    def lines(self) -> list[tuple[str, str]]:
        """What the terminal shows below the outcome of the run; the verdict is last."""
        return [("comparison", str(self.page)), ("compared", self.found.verdict)]

    def judged(self) -> Iterator[tuple[str, Judgement, str]]:
        """Each figure in words, what the run is against the baseline in it, and both values."""
        from writecliff.report.comparison.judgement import judgement
        from writecliff.report.comparison.page import figure_names

        if len(self.found.contenders) != 2:  # a sweep: nothing is set against a single run
            return
        for name, figure in zip(figure_names(self.found), self.found.figures, strict=True):
            word = judgement(figure, 0, 1)
            texts = ["-" if value is None else value.full_text for value in figure.values]
            yield name, word, f"{name} is {word}: {texts[1]}, in the baseline {texts[0]}"

    @property
    def worse(self) -> bool:
        """Whether a figure is worse than in the baseline by more than noise."""
        return any(word == "worse" for _, word, _ in self.judged())

    def mapping(self) -> dict[str, Any]:
        """The comparison as `writecliff compare --json` prints it."""
        from writecliff.report.comparison.page import comparison_mapping

        return {"report": self.page, **comparison_mapping(self.found)}


def check_baseline(baseline: Path | None) -> None:
    """Refuse a baseline without a run before hours are spent. Raises ConfigError, StoreError."""
    if baseline is not None:
        from writecliff.report.comparison.contenders import contenders_in

        contenders_in([baseline])


def against(baseline: Path | None, made: Path) -> AgainstBaseline | None:
    """Compare `made` with its baseline and write the page into it; None without a baseline."""
    if baseline is None:
        return None
    from writecliff.api import compare
    from writecliff.report.comparison.page import comparison_page
    from writecliff.report.pages import write_page

    found = compare(baseline, made)
    return AgainstBaseline(found, write_page(comparison_page(found), made / PAGE_NAME))
