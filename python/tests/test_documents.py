"""The examples of the documents, run.

The blocks of Python of a page run in their order, in one namespace and an empty folder; so do its blocks of shell after
`<!-- test: run -->`. A block after `<!-- test: compile -->` needs another machine: it has to compile, and to call functions
of the package by arguments that they have.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
import volery
from parties import address

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Pages whose code has to pass the checkers of types.
TYPED = ["README.md", "docs/tutorial.md"]
#: The types of results, by role and output.
TYPES = """
import volery
from typing import Any

def party(session: volery.Session, role: str, known: volery.Match) -> None:
    row: dict[str, Any] = session.psi(role="receiver", data=["a"]).rows[0]
    row = volery.psi(role="sender", data=["a"], both=True, listen="localhost:1").rows[0]
    row = session.lookup(role="receiver", data=["a"], left=True).rows[0]
    number: int = volery.psi(role="receiver", data=["a"], output="indices").count
    number = session.psi(role="receiver", data="a.csv", key="id", out="b.csv").count
    values = session.ope(role="receiver", points=[1]).values.tolist()
    values = session.matvec(role="sender", matrix=[[1]], result="sender").values.tolist()
    number = len(volery.cot(role="sender", n=1, connect="localhost:1").v)
    row = session.psi(role="receiver", data=["a"], output="indices").rows[0]  # wrong
    row = session.psi(role="receiver", data=["a"], out="b.csv").rows[0]  # wrong
    number = session.psi(role="sender", data=["a"]).count  # wrong
    number = session.psi(role="receiver", data=["a"], result="count").count  # wrong
    values = session.ope(role="sender", coefficients=[1]).values.tolist()  # wrong
    session.psi(role=role, data=["a"])  # wrong
    session.psi(role="sender", data=["a"], colour="red")  # wrong
    volery.lookup(role="sender", data=["a"], security="malicous")  # wrong
    volery.Session(port=7000)  # wrong
    known.rows[0]  # wrong
"""
BLOCK = re.compile(r"(?:^<!-- test: (?P<mark>\w+) -->\n+)?^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if "```python" in page.read_text()
         or "<!-- test: run -->" in page.read_text()]


def blocks(text: str) -> list[tuple[str, str, int]]:
    """What is to be done with each block, its text, and the line on which that begins."""
    found = []
    for block in BLOCK.finditer(text):
        kind, mark = block["kind"], block["mark"]
        line = text.count("\n", 0, block.start("text")) + 1
        if mark not in (None, "run", "compile"):
            raise AssertionError(f"line {line}: no such mark: {mark}")
        if kind == "python":
            found.append((mark or "run", block["text"], line))
        elif kind == "sh" and mark == "run":
            found.append(("shell", block["text"], line))
        elif mark is not None:
            raise AssertionError(f"line {line}: {mark} is no mark for a block of {kind or 'nothing'}")
    return found


def arguments(tree: ast.Module) -> list[str]:
    """Calls of functions of the package by arguments that they do not have."""
    wrong = []
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
            continue
        if call.func.value.id not in ("volery", "session") or not hasattr(volery, call.func.attr):
            if call.func.value.id == "volery":
                wrong.append(f"line {call.lineno}: volery.{call.func.attr}")
            continue
        known = inspect.signature(getattr(volery, call.func.attr)).parameters
        wrong += [
            f"line {call.lineno}: {call.func.attr}({word.arg}=)"
            for word in call.keywords
            if word.arg is not None and word.arg not in known
        ]
    return wrong


def shell(text: str, folder: pathlib.Path) -> None:
    """Lines of shell; one that listens runs beside the next that connects."""
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    text = text.replace("127.0.0.1:7000", address())
    behind: list[subprocess.Popen[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        process = subprocess.Popen(["bash", "-euc", line], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        behind.append(process)
        if "--listen" in line:
            continue
        while behind:
            one = behind.pop()
            _, errors = one.communicate(timeout=120)
            assert one.returncode == 0, f"{line}\n{errors}"
    assert not behind, "a side that listens has no other"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_page(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Files that the documents name are relative to the tree.
    (tmp_path / "crates").symlink_to(ROOT / "crates")
    names: dict[str, Any] = {"__name__": "page"}
    todo = blocks(page.read_text())
    assert todo
    for what, text, line in todo:
        if what == "shell":
            shell(text, tmp_path)
            continue
        # The line numbers of the page.
        tree = ast.parse("\n" * (line - 1) + text, str(page))
        assert arguments(tree) == []
        if what == "run":
            exec(compile(tree, str(page), "exec"), names)


@pytest.mark.parametrize("checker", [["mypy", "--strict"], ["basedpyright", "--level", "error"]], ids=["mypy", "pyright"])
def test_types_of_what_beginners_read(checker: list[str], tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.basedpyright]\ntypeCheckingMode = 'standard'\n")
    for page in TYPED:
        code = "\n".join(text for what, text, _ in blocks((ROOT / page).read_text()) if what != "shell")
        assert "volery" in code
        (tmp_path / pathlib.Path(page).with_suffix(".py").name).write_text(code)
    (tmp_path / "result_types.py").write_text(TYPES)
    command = [sys.executable, "-m", *checker, "."]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    expected = {("result_types", at) for at, line in enumerate(TYPES.splitlines(), 1) if "# wrong" in line}
    found = re.finditer(r"(\w+)\.py:(\d+):.* error", told)
    assert {(one[1], int(one[2])) for one in found} == expected, told


CALLS = [name for name in volery.__all__ if inspect.isroutine(getattr(volery, name))]


@pytest.mark.parametrize("name", ["Session", *CALLS])
def test_the_example_of_each_function(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(getattr(volery, name)) or ""
    example = doctest.DocTestParser().get_doctest(text, {"ADDRESS": address()}, name, None, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_what_the_collector_finds() -> None:
    text = "a\n```python\nx = 1\n```\n<!-- test: compile -->\n```python\ny = 2\n```\n```sh\nz\n```\n<!-- test: run -->\n\n```sh\nw\n```\n"
    assert blocks(text) == [("run", "x = 1\n", 3), ("compile", "y = 2\n", 7), ("shell", "w\n", 15)]
    with pytest.raises(AssertionError, match="line 3"):
        blocks("<!-- test: perhaps -->\n```python\n```\n")


def test_wrong_arguments_are_found() -> None:
    assert arguments(ast.parse("volery.psi(role='sender', data=[])")) == []
    assert arguments(ast.parse("volery.psi(rule='sender')\nvolery.match()\nsession.cot(m=3)")) == [
        "line 1: psi(rule=)",
        "line 2: volery.match",
        "line 3: cot(m=)",
    ]
