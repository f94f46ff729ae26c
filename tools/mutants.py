"""Mutants of a source file: one thing changed in each, by fixed operators (`variants`), nothing else touched.

Out of scope: docstrings, annotations, the arguments of `raise`, and what stands in f-strings.
"""

import ast
import copy
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.And: ast.Or,
    ast.Or: ast.And,
}  # fmt: skip
DELETED = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete, ast.Return, ast.Raise, ast.Assert, ast.Break,
    ast.Continue,
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    scope: str  # the class and function around it
    old: str  # the line, without its indent
    new: str
    source: str  # the whole file, changed

    @property
    def key(self) -> tuple[str, str, str]:
        """Names it in a list; no line number, so that the list outlives changes elsewhere in the file."""
        return f"{self.path} {self.scope}".strip(), f"- {self.old}", f"+ {self.new}"


def variants(node: ast.AST) -> Iterator[tuple[Any, ast.AST]]:
    """The operators: (node to replace, what with), for this node with its children as they are."""
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield node, changed(node, ops=[*node.ops[:i], SWAPS[type(op)](), *node.ops[i + 1 :]])
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if type(node.op) in SWAPS:
            yield node, changed(node, op=SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Call(func=ast.Name("min" | "max" as name)):
            yield node, changed(node, func=ast.Name("max" if name == "min" else "min"))
        case ast.Constant(bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield node, ast.Constant(value + 1)
            if value == 1:
                yield node, ast.Constant(0)
        case ast.Slice():
            for bound in ("lower", "upper"):
                if (old := getattr(node, bound)) is not None:
                    yield node, changed(node, **{bound: ast.BinOp(old, ast.Add(), ast.Constant(1))})
        case ast.Break() | ast.Continue():
            yield node, ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    tests = getattr(node, "ifs", [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else [])
    for test, value in itertools.product(tests, (True, False)):
        yield test, ast.Constant(value)
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_declaration = isinstance(node, ast.AnnAssign) and node.value is None
    if isinstance(node, DELETED) and not is_docstring and not is_declaration:
        yield node, ast.Pass()


def changed(node: ast.AST, **fields: object) -> ast.AST:
    twin = copy.copy(node)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def in_scope(node: ast.AST, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The node and all below it, each with the class and function around it, but for what is out of scope."""
    yield scope, node
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        scope = f"{scope}.{node.name}".lstrip(".")
    for name, child in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for item in child if isinstance(child, list) else [child]:
                if isinstance(item, ast.AST):
                    yield from in_scope(item, scope)


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """All mutants of a file. The text is changed in its place, so all else keeps its line."""
    lines = source.splitlines(keepends=True)
    begins = [0, *itertools.accumulate(map(len, lines))]
    for scope, parent in in_scope(ast.parse(source)):
        for node, replacement in variants(parent):
            line, end_line = node.lineno - 1, node.end_lineno - 1
            start, stop = begins[line] + node.col_offset, begins[end_line] + node.end_col_offset
            text = " ".join(ast.unparse(replacement).split()).encode()
            result = source[:start] + text + source[stop:]
            if not isinstance(replacement, ast.stmt | ast.Slice):
                bracketed = source[:start] + b"(" + text + b")" + source[stop:]
                if ast.dump(ast.parse(result)) != ast.dump(ast.parse(bracketed)):
                    result = bracketed
            old, new = (x.splitlines()[line].decode().strip() for x in (source, result))
            yield Mutant(path, line + 1, scope, old, new, result.decode())


def read_list(path: Path) -> dict[tuple[str, str, str], str]:
    """A list of mutants: place, - line, + line and a word about it on four lines, with a blank one between."""
    blocks = [block.splitlines() for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    return {(place, old, new): word for place, old, new, word in blocks}
