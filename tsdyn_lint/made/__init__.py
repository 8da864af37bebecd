"""`ast` trees -> libcst's nodes without their white space, and which syntax each was made from.

libcst's own parser keeps every blank and parenthesis as an object of its own, and takes ten times as long as `ast`.
An analysis reads neither. A node made here has the fields that say what the code does (`nodes.FIELDS`), the others are
unset; what it is made from knows its place in the text.
"""

from tsdyn_lint.made.expressions import UnknownSyntax
from tsdyn_lint.made.statements import Maker

__all__ = ["Maker", "UnknownSyntax"]
