"""Settings of the documentation. docs/build runs it; the sources are Markdown files of the tree."""

import pathlib
import re

project = "volery"
copyright = "the authors of volery"  # noqa: A001
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "docs/index"

# The pages of the site. docs/index.md lists each of them; `.ci/links` checks that.
PAGES = [
    "docs/index.md",
    # Learn
    "docs/tutorial.md",
    "docs/correlations.md",
    # Do
    "docs/keys.md",
    "docs/deploy.md",
    "docs/totals.md",
    "docs/clusters.md",
    "docs/serve.md",
    "docs/python.md",
    # Look up
    "docs/cli.md",
    "docs/python-reference.md",
    "docs/library.md",
    "SECURITY.md",
    # Understand
    "docs/security-plain.md",
    "docs/protocols.md",
    "docs/comparison.md",
]
include_patterns = PAGES

html_theme = "furo"
html_title = "volery"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]

# The anchors that the pages have on GitHub.
myst_heading_anchors = 4

# Copied are commands, without prompts and without what they print.
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"

# Else the argument `or_` loses its underscore.
napoleon_use_param = False
# The headings of arguments are those of the program's help.
napoleon_custom_sections = [
    (heading, "params_style")
    for heading in (
        "Peer", "Input", "Keys", "Output", "Counts and sums", "Shares", "Protocol", "Large tables", "Running"
    )
]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_display_short_literal_types = True
python_maximum_signature_line_length = 80

REPOSITORY = "https://github.com/volery/volery/blob/main"


def link_to_the_repository(app, name, source):
    """Files of the tree that are no pages of the site are links to the repository."""
    root = pathlib.Path(app.srcdir).resolve()
    folder = (root / name).parent

    def address(link):
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        file = (folder / target).resolve()
        if not file.exists() or not file.is_relative_to(root) or str(file.relative_to(root)) in PAGES:
            return link.group()
        return f"{text}({REPOSITORY}/{file.relative_to(root)}{anchor})"

    source[0] = re.sub(r"(?<!!)(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s:#]+)(#[^()\s]*)?\)", address, source[0])


def setup(app):
    app.connect("source-read", link_to_the_repository)
