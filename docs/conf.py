"""Settings of the documentation. docs/build runs it; the sources are the Markdown files of the whole tree."""

project = "volery"
copyright = "the authors of volery"  # noqa: A001
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "REPRODUCTION.md", "lab/README.md"]

html_theme = "furo"
html_title = "volery"
html_show_sphinx = False
html_copy_source = False

# The anchors that the pages have on GitHub.
myst_heading_anchors = 4

nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True

# Else the argument `or_` loses its underscore.
napoleon_use_param = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_display_short_literal_types = True
python_maximum_signature_line_length = 80
