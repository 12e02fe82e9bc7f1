"""Symbolic dimensions: expressions that stand for sizes of arrays in shapes. Read in this order:

expressions (the normal form and its arithmetic), bounds (what comparisons decide), specs (text), scopes (constraints).
Only the first is loaded before somebody makes a scope.
"""

from pullback.core.dimensions.expressions import (
    Dimension,
    Expression,
    as_operand,
    evaluate,
    expression,
    index,
    is_at_least,
    is_symbolic,
    is_symbolic_type,
    max_dim,
    min_dim,
    slice_of_symbolic,
    variables,
)

__all__ = [name for name in dir() if not name.startswith("_")]
