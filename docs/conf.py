"""How Sphinx makes the site out of the Markdown that code hosts show: `make docs`.

Its sources are the whole repository's pages, so that links from one to another hold in both places,
and what a page links of other files is there to be downloaded. It fetches nothing from other hosts.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

REPOSITORY = Path(__file__).parents[1]

project = "zlog"
author = "the zlog developers"
release = re.findall(r'^version = "(.*)"', (REPOSITORY / "pyproject.toml").read_text(), re.M)[0]

extensions = ["myst_parser"]
myst_heading_anchors = 5  # named as code hosts name them
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "ceph-dev/README.md"]
exclude_patterns = ["docs/README.md", "build", "dist", ".*"]

smartquotes = False

html_theme = "furo"
html_title = f"zlog {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "footer_icons": []}
pygments_style = "default"
pygments_dark_style = "github-dark"

NAVIGATION = {
    "Start": ["docs/tutorial", "Which log when <docs/compare>"],
    "Guides": [
        "docs/wal",
        "docs/objects",
        "docs/event-sourcing",
        "docs/spark",
        "docs/tables",
        "docs/pipelines",
        "docs/http",
        "docs/http-examples",
        "docs/event-bus",
        "docs/spool",
        "docs/testing",
    ],
    "Operating": ["docs/operating", "docs/console", "docs/metrics", "docs/upgrading"],
    "Reference": ["docs/cli", "docs/api", "docs/correctness", "docs/performance"],
    "Design": [
        "docs/design",
        "docs/glossary",
        "docs/model",
        "docs/formats/README",
        "docs/decisions/README",
    ],
    "Project": ["CHANGELOG", "CONTRIBUTING", "ceph-dev/README", "SECURITY", "CODE_OF_CONDUCT"],
}
FOLDERS = {"docs/design": "design/", "docs/formats/README": "", "docs/decisions/README": ""}
"""Pages that list the pages of a folder, in the order of their links, which begin with this."""


def add_contents(_app: Sphinx, name: str, text: list[str]) -> None:
    """Put a page's place in the navigation below it, where code hosts need none."""
    if name == root_doc:
        for caption, pages in NAVIGATION.items():
            text[0] += _toctree(pages, f":caption: {caption}")
    if name in FOLDERS:
        links = re.findall(rf"\]\(({FOLDERS[name]}[\w-]+)\.md\)", text[0])
        text[0] += _toctree(dict.fromkeys(links))


def _toctree(pages: Iterable[str], *caption: str) -> str:
    return "\n".join(["\n\n```{toctree}", ":hidden:", *caption, "", *pages, "```"])


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Have the site open with the root page."""
    if error is None:
        shutil.copyfile(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    """Connect what is above, and have bytes in hex be a language."""
    app.add_lexer("hex", TextLexer)
    app.connect("source-read", add_contents)
    app.connect("build-finished", add_index)
