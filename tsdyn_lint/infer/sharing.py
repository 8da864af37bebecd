"""Objects of equal content are one object for all entry points: what calls of one gave, calls of the other give.

Each entry point has its object built anew, with parts that the entry points before it had as well. A part takes the
place of an equal one only as long as it is what its constructor left, and takes one place only: two parts of an object
stay two, so that what is written to one of them is not seen in the other.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from tsdyn_lint.infer.heap import Heap, Opaque, fill
from tsdyn_lint.infer.values import LEAVES_OF, Instance, Mapping, Seq, Value
