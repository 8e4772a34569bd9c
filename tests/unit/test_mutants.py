"""The tool that counts which small changes of the code the tests notice."""

import ast
from pathlib import Path

import pytest

from mutants.__main__ import TESTS
from mutants.mutations import mutations

SOURCE = '''
"""A module."""

@decorator(frozen=True)
def clamp(value: Literal[5], low=0):
    if value < low and not done:
        return None
    total += value // 2
    log(value)
    return -value if flag else low
'''


def mutants(source: str) -> set[str]:
    tree = ast.parse(source)
    found = set()
    for mutation in mutations(tree):
        mutation.apply()
        found.add(ast.unparse(tree))
        mutation.undo()
    assert ast.unparse(tree) == ast.unparse(ast.parse(source))
    return found


@pytest.mark.parametrize(
    ("original", "changed"),
    [
        ("value < low", "value <= low"),
        ("value < low", "value >= low"),
        ("value < low and (not done)", "value < low or not done"),
        ("not done", "done"),
        ("if value < low and (not done):", "if True:"),
        ("if value < low and (not done):", "if False:"),
        ("low=0", "low=1"),
        ("total += value // 2", "pass"),
        ("value // 2", "value * 2"),
        ("// 2", "// 3"),
        ("log(value)", "pass"),
        ("-value if flag else low", "low if flag else -value"),
        ("-value", "value"),
        ("return -value if flag else low", "return None"),
    ],
)
def test_each_kind_of_change_is_made_once(original: str, changed: str) -> None:
    plain = ast.unparse(ast.parse(SOURCE))
    assert original in plain
    assert ast.unparse(ast.parse(plain.replace(original, changed))) in mutants(SOURCE)


def test_types_decorators_and_equal_programs_are_left_alone() -> None:
    found = mutants(SOURCE)
    assert len(found) == 14
    assert all("Literal[5]" in mutant and "frozen=True" in mutant for mutant in found)


def test_the_modules_and_their_tests_exist() -> None:
    root = Path(__file__).parents[2]
    for module, tests in TESTS.items():
        assert (root / "src" / "nmt" / f"{module}.py").is_file()
        assert [test for test in tests if not (root / "tests" / test).is_file()] == []
