"""Statements -> whether they only check: they raise, or leave all as it was. A capture that drops them gives the same
results.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tsdyn_lint.nodes import children

_ASSERTIONS = frozenset({"_assert", "_check", "_check_is_size", "_check_value", "_check_index", "_check_type"})
_NEUTRAL = (cst.Assert, cst.Pass, cst.Raise)


def checks_only(node: cst.If) -> bool:
    """Whether both sides of an `if` do the same but for an error that one of them may raise."""
    sides = [_statements(node.body), *([_statements(node.orelse.body)] if isinstance(node.orelse, cst.Else) else [])]
    if any(_ends_in_raise(side) for side in sides):
        return True
    return not isinstance(node.orelse, cst.If) and all(_checks(s) for side in sides for s in side)


def only_raises(node: cst.If) -> bool:
    """Whether an `if` has nothing in it but a raise."""
    lines = _statements(node.body)
    return node.orelse is None and all(
        isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        and all(type(s) is cst.Raise for s in line.body)
        for line in lines
    )


def is_a_check(body: Sequence[cst.CSTNode]) -> bool:
    """Whether a function of these statements works out no more than whether to raise."""
    return all(map(_stays_inside, body)) and any(map(_may_raise, body))


def _statements(suite: cst.BaseSuite) -> Sequence[cst.CSTNode]:
    return suite.body if isinstance(suite, cst.IndentedBlock) else [suite]


def _ends_in_raise(body: Sequence[cst.CSTNode]) -> bool:
    line = body[-1]
    return isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite)) and type(line.body[-1]) is cst.Raise


def _checks(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return all(isinstance(s, _NEUTRAL) or _asserts(s) for s in node.body)
    return isinstance(node, cst.If) and checks_only(node)


def _asserts(node: cst.CSTNode) -> bool:
    """`torch._assert(...)`, `torch._check(...)`."""
    if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call):
        return False
    name = node.value.func.attr if isinstance(node.value.func, cst.Attribute) else node.value.func
    return isinstance(name, cst.Name) and name.value in _ASSERTIONS


def _may_raise(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Raise, cst.Assert)) or _asserts(node):
        return True
    return not isinstance(node, cst.BaseExpression) and any(map(_may_raise, children(node)))


def _stays_inside(node: cst.CSTNode) -> bool:
    """Whether nobody outside of the function can tell that the statement ran, but by an error."""
    if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
        return all(isinstance(s, _NEUTRAL) or _asserts(s) or _is_local(s) for s in node.body)
    if isinstance(node, (cst.If, cst.For, cst.Else)):
        after = getattr(node, "orelse", None)
        return all(map(_stays_inside, _statements(node.body))) and (after is None or _stays_inside(after))
    return False


def _is_local(node: cst.CSTNode) -> bool:
    """A text, a plain return, or a name that is set."""
    if isinstance(node, cst.Expr):
        return isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString))
    if isinstance(node, cst.Return):
        return node.value is None or isinstance(node.value, cst.Name) and node.value.value == "None"
    if isinstance(node, cst.Assign):
        return all(_is_name(t.target) for t in node.targets)
    return isinstance(node, (cst.AnnAssign, cst.AugAssign)) and _is_name(node.target)


def _is_name(target: cst.CSTNode) -> bool:
    if isinstance(target, cst.Tuple):
        return all(_is_name(e.value) for e in target.elements)
    return isinstance(target, cst.Name)
