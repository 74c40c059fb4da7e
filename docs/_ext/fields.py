"""Fields of dataclasses in the reference: a list with type, default and the comment beside each.

Comments stand on a field's line or above it, where readers of the code look; autodoc knows only
those that begin with `#:`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any


def fields_of(kind: type) -> list[tuple[str, str, str]]:
    """Return name, declaration (type, default) and comment of fields without a docstring."""
    text = inspect.cleandoc(inspect.getsource(kind))
    lines = text.splitlines()
    (body,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    fields = []
    for here, after in zip(body.body, [*body.body[1:], None], strict=True):
        if not isinstance(here, ast.AnnAssign) or not isinstance(here.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            continue  # autodoc shows the docstring
        declared = ast.unparse(here).partition(": ")[2]
        beside = lines[(here.end_lineno or here.lineno) - 1][here.end_col_offset or 0 :]
        fields.append((here.target.id, declared, _comment(beside) or _above(lines, here.lineno)))
    return fields


def _comment(text: str) -> str:
    return text.partition("#")[2].strip().removeprefix("noqa").strip()


def _above(lines: list[str], line: int) -> str:
    """Return the comment directly above a line (counted from 1)."""
    comments: list[str] = []
    for text in reversed(lines[: line - 1]):
        if not text.strip().startswith("#"):
            break
        comments.insert(0, _comment(text))
    return " ".join(comments)


def _process(_app: Any, what: str, _name: str, thing: Any, _options: Any, text: list[str]) -> None:
    if what != "class" or not dataclasses.is_dataclass(thing):
        return
    rows = fields_of(thing)
    if rows:
        text += ["", "Fields:", ""]
    for name, declared, comment in rows:
        text += [f"- ``{name}: {declared}``" + (f": {comment}" if comment else ""), ""]


def setup(app: Any) -> dict[str, Any]:
    """Registers with Sphinx."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True}
