"""Operators and other signs: one node of each serves all that are made."""

from __future__ import annotations

import ast

import libcst as cst

ASYNC = cst.Asynchronous()
OPERATORS: dict[type[ast.AST], cst.CSTNode] = {
    ast.Add: cst.Add(),
    ast.And: cst.And(),
    ast.BitAnd: cst.BitAnd(),
    ast.BitOr: cst.BitOr(),
    ast.BitXor: cst.BitXor(),
    ast.Div: cst.Divide(),
    ast.Eq: cst.Equal(),
    ast.FloorDiv: cst.FloorDivide(),
    ast.Gt: cst.GreaterThan(),
    ast.GtE: cst.GreaterThanEqual(),
    ast.In: cst.In(),
    ast.Invert: cst.BitInvert(),
    ast.Is: cst.Is(),
    ast.IsNot: cst.IsNot(),
    ast.LShift: cst.LeftShift(),
    ast.Lt: cst.LessThan(),
    ast.LtE: cst.LessThanEqual(),
    ast.MatMult: cst.MatrixMultiply(),
    ast.Mod: cst.Modulo(),
    ast.Mult: cst.Multiply(),
    ast.Not: cst.Not(),
    ast.NotEq: cst.NotEqual(),
    ast.NotIn: cst.NotIn(),
    ast.Or: cst.Or(),
    ast.Pow: cst.Power(),
    ast.RShift: cst.RightShift(),
    ast.Sub: cst.Subtract(),
    ast.UAdd: cst.Plus(),
    ast.USub: cst.Minus(),
}
AUGMENTED: dict[type[ast.AST], cst.CSTNode] = {
    ast.Add: cst.AddAssign(),
    ast.BitAnd: cst.BitAndAssign(),
    ast.BitOr: cst.BitOrAssign(),
    ast.BitXor: cst.BitXorAssign(),
    ast.Div: cst.DivideAssign(),
    ast.FloorDiv: cst.FloorDivideAssign(),
    ast.LShift: cst.LeftShiftAssign(),
    ast.MatMult: cst.MatrixMultiplyAssign(),
    ast.Mod: cst.ModuloAssign(),
    ast.Mult: cst.MultiplyAssign(),
    ast.Pow: cst.PowerAssign(),
    ast.RShift: cst.RightShiftAssign(),
    ast.Sub: cst.SubtractAssign(),
}
