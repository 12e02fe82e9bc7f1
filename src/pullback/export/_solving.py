"""The values of dimension variables from the shapes of arguments.

Each dimension of an argument is an equation: expression = size. One that is linear in its only unknown variable, as in
2*b + a*3 with a known, gives its value; the others are checked, as the constraints of the scope are. Sizes may be
dimensions of another scope, where an exported function is called in the trace of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.avals import ShapedArray
from pullback.core.dimensions import Dimension, evaluate, is_symbolic, variables
from pullback.core.dimensions.expressions import combine, of_product
from pullback.util.errors import InconclusiveDimensionOperation


class Solver:
    """How to get the values of all variables of some types; ValueError where that cannot be had.

    avals: the types of arguments; names: of these, for messages, such as args[0].
    """

    def __init__(self, avals: Sequence[ShapedArray], names: Sequence[str]):
        self.specs: list[tuple[str, Dimension, int, int]] = []  # (where, dimension, argument, axis)
        for number, (aval, name) in enumerate(zip(avals, names, strict=True)):
            for axis, d in enumerate(aval.shape):
                if isinstance(d, Dimension):
                    self.specs.append((f"{name}.shape[{axis}]", d, number, axis))
        self.scope = self.specs[0][1].scope if self.specs else None
        symbolic = [(n, a) for n, a in zip(names, avals) if any(map(is_symbolic, a.shape))]
        self.shown = ", ".join(f"{name}.shape = {_shape_text(aval.shape)}" for name, aval in symbolic)
        self.order = self._order()

    def _order(self) -> list[tuple[str, int]]:
        """(variable, number of the specification that gives it), in an order in which that is possible."""
        found: list[tuple[str, int]] = []
        known: set[str] = set()
        wanted = {v for _, d, _, _ in self.specs for v in variables(d)}
        while True:
            for number, (_, d, _, _) in enumerate(self.specs):
                unknown = [v for v in variables(d) if v not in known]
                if len(unknown) == 1 and _coefficient(d, unknown[0]) is not None:
                    found.append((unknown[0], number))
                    known.add(unknown[0])
                    break
            else:
                break
        if wanted != known:
            left = ", ".join(
                f"'{d}' for dimension size {where}"
                for where, d, _, _ in self.specs
                if not known.issuperset(variables(d))
            )
            raise ValueError(
                f"export: the shapes {self.shown} do not tell the dimension variables {sorted(wanted - known)}. Each "
                "needs a dimension that is a multiple of it plus what is known from others, as in 2*n + 1; open are "
                f"{left}"
            )
        return found

    def solve(self, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The values for arguments of these shapes, whose ranks fit; ValueError if no values do."""
        values: dict[str, Any] = {}
        obtained: list[str] = []

        def fail(problem: str) -> ValueError:
            return ValueError(
                f"these arguments do not fit the shapes of the exported function, {self.shown}: {problem}"
                + (f" ({'; '.join(obtained)})" if obtained else "")
            )

        for name, number in self.order:
            where, d, argument, axis = self.specs[number]
            size = shapes[argument][axis]
            coefficient = _coefficient(d, name)
            assert coefficient is not None
            factor, rest = (evaluate(e, values) for e in coefficient)
            if isinstance(factor, int) and factor == 0:
                raise fail(f"the factor of '{name}' in '{d}' is 0")
            value, remainder = divmod(size - rest, factor)
            if not (isinstance(remainder, int) and remainder == 0):
                raise fail(
                    f"{where} is {size}, of which '{d}' leaves a remainder of {remainder}, so no integer '{name}' fits"
                )
            values[name] = value
            obtained.append(f"'{name}' is {value}, since {where} is {size} and stands for '{d}'")
            if not _holds(lambda value=value: value >= 1):
                raise fail(f"'{name}' would be {value}, and dimension variables are 1 or more")
        for where, d, argument, axis in self.specs:
            size, expected = shapes[argument][axis], evaluate(d, values)
            if size != expected:
                raise fail(f"{where} is {size}, where '{d}' is {expected}")
        self._check_constraints(values, fail)
        return values

    def _check_constraints(self, values: dict[str, Any], fail: Any) -> None:
        for constraint in self.scope.constraints if self.scope is not None else ():
            if any(v not in values for v in variables(constraint.difference)):
                continue  # of variables that no argument has
            found = evaluate(constraint.difference, values)
            if constraint.equal:
                if not (isinstance(found, int) and found == 0):
                    raise fail(
                        f"the constraint {constraint.text} does not hold; '{constraint.difference}' is {found}, not 0"
                    )
            elif not _holds(lambda found=found: found >= 0):
                raise fail(
                    f"the constraint {constraint.text} does not hold; '{constraint.difference}' is {found}, below 0"
                )


def _coefficient(d: Dimension, name: str) -> tuple[Any, Any] | None:
    """(factor, rest) with d == factor*name + rest, both without the variable; None where d is not linear in it."""
    factor: Any = 0
    rest: Any = 0
    for product, count in d.terms:
        own = [n for f, n in product if f.name == name and not f.operands]
        others = tuple((f, n) for f, n in product if f.name != name or f.operands)
        part = combine([(of_product(others, None), count)], None)
        if name in variables(of_product(others, None)) or own not in ([], [1]):
            return None
        if own:
            factor = combine([(factor, 1), (part, 1)], None)
        else:
            rest = combine([(rest, 1), (part, 1)], None)
    return (factor, rest) if factor != 0 else None


def _holds(test: Any) -> bool:
    try:
        return test()
    except InconclusiveDimensionOperation:
        return False


def _shape_text(shape: Sequence[Any]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
