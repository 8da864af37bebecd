"""Patterns of `match` statements -> those of libcst."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from tsdyn_lint.made.expressions import Expressions, UnknownSyntax, new


class Patterns(Expressions):
    """`pattern` makes one."""

    def pattern(self, node: ast.pattern) -> Any:
        made: Any
        match node:
            case ast.MatchValue():
                made = new(cst.MatchValue)
                made.value = self.expression(node.value)
            case ast.MatchSingleton():
                made = new(cst.MatchSingleton)
                made.value = self.named(repr(node.value), node)
            case ast.MatchSequence():
                made = new(cst.MatchList)
                made.patterns = [self._pattern_element(one) for one in node.patterns]
            case ast.MatchMapping():
                made = new(cst.MatchMapping)
                made.elements = []
                for key, pattern in zip(node.keys, node.patterns, strict=True):
                    element = new(cst.MatchMappingElement)
                    element.key, element.pattern = self.expression(key), self.pattern(pattern)
                    self.origins[element] = key
                    made.elements.append(element)
                made.rest = None if node.rest is None else self.named(node.rest, node)
            case ast.MatchClass():
                made = new(cst.MatchClass)
                made.cls = self.expression(node.cls)
                made.patterns = [self._pattern_element(one) for one in node.patterns]
                made.kwds = []
                for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
                    element = new(cst.MatchKeywordElement)
                    element.key, element.pattern = self.named(name, pattern), self.pattern(pattern)
                    self.origins[element] = pattern
                    made.kwds.append(element)
            case ast.MatchStar():
                made = new(cst.MatchStar)
                made.name = None if node.name is None else self.named(node.name, node)
            case ast.MatchAs():
                made = new(cst.MatchAs)
                made.pattern = None if node.pattern is None else self.pattern(node.pattern)
                made.name = None if node.name is None else self.named(node.name, node)
            case ast.MatchOr():
                made = new(cst.MatchOr)
                made.patterns = []
                for one in node.patterns:
                    element = new(cst.MatchOrElement)
                    element.pattern = self.pattern(one)
                    self.origins[element] = one
                    made.patterns.append(element)
            case _:
                raise UnknownSyntax(type(node).__name__)
        self.origins[made] = node
        return made

    def _pattern_element(self, node: ast.pattern) -> Any:
        made = self.pattern(node)
        if type(node) is ast.MatchStar:
            return made
        around = new(cst.MatchSequenceElement)
        around.value = made
        self.origins[around] = node
        return around
