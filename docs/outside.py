"""Fails if a page of a folder loads anything from outside: scripts, styles, fonts, images, frames."""

import pathlib
import re
import sys

# What a browser fetches by itself. Links that a reader follows are not meant.
LOADS = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed|object)\b[^>]*\b(?:src|srcset|data)\s*=\s*["']?\s*((?:https?:)?//[^\s"'>]+)
    |<link\b(?=[^>]*\brel\s*=\s*["']?(?:stylesheet|preload|icon|shortcut|modulepreload|prefetch|preconnect))
        [^>]*\bhref\s*=\s*["']?((?:https?:)?//[^\s"'>]+)
    |\burl\(\s*["']?((?:https?:)?//[^\s"')]+)
    |@import\s+["']((?:https?:)?//[^\s"']+)""",
    re.IGNORECASE | re.VERBOSE,
)


def loads(text):
    return ["".join(found) for found in LOADS.findall(text)]


# The check itself, on what it must and must not find.
assert loads('<script async src="https://a.example/x.js">') == ["https://a.example/x.js"]
assert loads('<link href="//b.example/x.css" rel="stylesheet">') == ["//b.example/x.css"]
assert loads("@font-face { src: url(https://c.example/f.woff2) }") == ["https://c.example/f.woff2"]
assert loads('<a href="https://d.example">there</a> <img src="_images/x.png">') == []

found = [
    f"{path}: {address}"
    for path in sorted(pathlib.Path(sys.argv[1]).rglob("*"))
    if path.suffix in (".html", ".css", ".svg")
    for address in loads(path.read_text(errors="replace"))
]
if found:
    sys.exit("the site loads from outside:\n" + "\n".join(found))
