"""The documentation site: `make site` builds it with Sphinx, and a warning is an error.

Pages are Markdown as GitHub shows it (MyST); `_ext` has what Sphinx does not know.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS.parent / "python")]

from docs._ext.gallery import MADE  # noqa: E402 - docs is found by the line above
from docs._ext.versions import version as version_of_checkout  # noqa: E402

project = "writecliff"
author = "the writecliff authors"
version = release = version_of_checkout()
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "docs._ext.fences",
    "docs._ext.fields",
    "docs._ext.gallery",
    "docs._ext.search_words",
]
exclude_patterns = ["_ext"]
templates_path = ["_templates"]

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
html_js_files = ["versions.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#8ab8e6", "color-brand-content": "#8ab8e6"},
}
