"""No function takes so many arguments that a reader loses count; commands of click may."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 8
ALLOWED = {"tests/worlds.py"}  # `build` describes a whole world, by keywords


def long_functions(text):
    """Names of functions with more arguments than that; what is made a command does not count."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            words = " ".join(ast.unparse(each) for each in node.decorator_list)
            if count > MOST and "command" not in words and "option" not in words:
                yield node.name


def test_a_function_of_nine_arguments_is_found():
    text = "def long(a, b, c, d, e, f, g, *, h, i): ...\ndef short(a, b, c, d, e, f, g, h): ..."
    assert list(long_functions(text)) == ["long"]


@pytest.mark.parametrize("folder", ["src", "tests", "experiments", "examples"])
def test_no_function_takes_more_than_eight_arguments(folder):
    found = {
        path.relative_to(ROOT).as_posix(): list(long_functions(path.read_text()))
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path for path, names in found.items() if names} <= ALLOWED
