"""List the mutations of a module's source: small changes of its meaning, each of which a test should notice."""

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
"""What a comparison becomes: its neighbour at the boundary, and its opposite."""
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
}  # fmt: skip
IGNORED = ("annotation", "returns", "type_params", "decorator_list")
"""Fields of the syntax tree that hold types, or say how a class is made."""


class Mutation(NamedTuple):
    """A change of one place in a source."""

    line: int
    what: str
    apply: Callable[[], None]
    """Changes the tree."""
    undo: Callable[[], None]


def mutations(tree: ast.Module) -> list[Mutation]:
    """Return all mutations of a module."""
    return [each for parent, name, index, node in _places(tree) for each in _of(parent, name, index, node)]


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield the nodes below a node and where they are, except those that no test can or should notice."""
    for name, value in ast.iter_fields(node):
        if name in IGNORED:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST) or "TYPE_CHECKING" in ast.unparse(child).partition("\n")[0]:
                continue
            yield node, name, index, child
            yield from _places(child)


def _of(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> Iterator[Mutation]:
    for replacement in _replacements(node):
        yield _replacing(parent, name, index, node, replacement)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, [operator], comparators):
            yield from (ast.Compare(left, [other()], comparators) for other in COMPARISONS[type(operator)])
        case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.And() if isinstance(operator, ast.Or) else ast.Or(), values)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.If(test, body, orelse):
            yield from (ast.If(ast.Constant(value), body, orelse) for value in (True, False))
        case ast.Return(ast.Constant(None)):
            return
        case ast.Return(ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield ast.Pass()


def _replacing(parent: ast.AST, name: str, index: int | None, node: ast.AST, replacement: ast.AST) -> Mutation:
    def put(new: ast.AST) -> None:
        if index is None:
            setattr(parent, name, new)
        else:
            getattr(parent, name)[index] = new

    line: int = getattr(node, "lineno", 0)
    what = f"{_short(node)}  ->  {_short(ast.fix_missing_locations(replacement))}"
    return Mutation(line, what, lambda: put(replacement), lambda: put(node))


def _short(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0][:70]
