"""The documentation site: `make site` builds it with Sphinx, and a warning is an error.

Pages are Markdown as GitHub shows it (MyST); `_ext` has what Sphinx does not know.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS.parent / "python")]

from docs._ext.gallery import MADE  # noqa: E402 - docs is found by the line above

project = "writecliff"
author = "the writecliff authors"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docs._ext.fences",
    "docs._ext.fields",
    "docs._ext.gallery",
]
exclude_patterns = ["_ext"]

myst_heading_anchors = 4  # pages link to headings, as on GitHub

default_role = "code"  # docstrings put names into single backticks
napoleon_numpy_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
add_module_names = False
maximum_signature_line_length = 80

html_extra_path = [str(MADE / "pages")] if (MADE / "pages").is_dir() else []
html_theme = "furo"
html_title = "writecliff"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#8ab8e6", "color-brand-content": "#8ab8e6"},
}
