"""Einstein summation: a plan of pairwise contractions (order by opt_einsum), each one `lax.dot_general`.

Planning depends on the subscripts and shapes alone and is cached, so that a second call costs its contractions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.asked import asked
from pullback.core.explain import shown
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.products.dot import check_terms
from pullback.numpy._arguments import (
    as_array,
    check_arraylike,
    convert,
    product_type,
    refuse_out,
)
from pullback.numpy._diagonals import diagonal
from pullback.util import dtypes
from pullback.util.record import record


@record
class _Term:
    """How one operand is made ready: diagonals of repeated labels, then axes dropped (length 1) and summed over."""

    diagonals: tuple[tuple[int, int], ...]  # pairs of axes; the diagonal becomes the last axis
    dropped: tuple[int, ...]
    summed: tuple[int, ...]
    labels: str  # what is left


@record
class _Step:
    """One contraction: operands at `positions` are removed from the list, their result is put at its end."""

    positions: tuple[int, ...]
    terms: tuple[_Term, ...]
    numbers: Any  # dimension numbers of dot_general, None for a step of one operand
    permutation: tuple[int, ...] | None


@functools.lru_cache(maxsize=4096)
def _plan(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> tuple[_Step, ...]:
    """Steps that evaluate the subscripts on operands of these shapes; ValueError if they do not fit."""
    plain = _plain(subscripts)
    if plain is None:
        import opt_einsum

        inputs_text, output, _ = opt_einsum.parser.parse_einsum_input((subscripts, *shapes), shapes=True)
        plain = inputs_text.split(","), output
    inputs, output = plain
    sizes: dict[str, int] = {}
    for number, (labels, shape) in enumerate(zip(inputs, shapes)):
        if len(labels) != len(shape):
            raise ValueError(
                f"Einstein sum subscript {labels!r} does not contain the correct number of indices for operand "
                f"{number}."
            )
        for label, n in zip(labels, shape):
            known = sizes.get(label, 1)
            if known != 1 and n not in (1, known):
                raise ValueError(
                    f"Size of label {label!r} for operand {number} ({n}) does not match previous terms ({known})."
                )
            sizes[label] = n if known == 1 else known
    if len(set(output)) != len(output):
        repeated = next(c for c in output if output.count(c) > 1)
        raise ValueError(f"Output character {repeated!r} appeared more than once in the output.")
    missing = [c for c in output if c not in sizes]
    if missing:
        raise ValueError(f"Output character {missing[0]!r} did not appear in the input")
    if len(inputs) <= 2:
        path: Sequence[tuple[int, ...]] = [tuple(range(len(inputs)))]
    else:
        import opt_einsum

        kind = "optimal" if optimize in ("auto", True) else optimize
        if not isinstance(kind, str) and kind is not False:
            kind = [tuple(p) for p in kind if p != "einsum_path"]
        path, _ = opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=kind)
    steps: list[_Step] = []
    current = [(labels, shape) for labels, shape in zip(inputs, shapes)]
    for number, positions in enumerate(path):
        last = number == len(path) - 1
        # A step of more than two operands (optimize=False) is done from left to right.
        chosen = sorted(positions)
        while True:
            pair = tuple(chosen[:2])
            final = last and len(chosen) <= 2
            rest = [labels for k, (labels, _) in enumerate(current) if k not in pair]
            wanted = output if final else "".join(dict.fromkeys("".join(rest) + output))
            step, labels = _step(pair, [current[k] for k in pair], wanted, final, sizes)
            steps.append(step)
            current = [c for k, c in enumerate(current) if k not in pair]
            current.append((labels, tuple(sizes[c] for c in labels)))
            if len(chosen) <= 2:
                break
            removed = set(pair)
            chosen = [k - sum(r < k for r in removed) for k in chosen[2:]]
            chosen = [len(current) - 1, *chosen]
            chosen = [chosen[0], *chosen[1:]]
    return tuple(steps)


def _plain(subscripts: str) -> tuple[list[str], str] | None:
    """(labels of each operand, those of the result) of subscripts of ASCII letters; None for all else, wrong ones too.

    opt_einsum reads what is left: to load it takes longer than to compile a small product of two operands.
    """
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    labels = "".join(inputs)
    if not (labels + output + "a").isalpha() or not subscripts.isascii():
        return None
    if not arrow:
        output = "".join(c for c in sorted(set(labels)) if labels.count(c) == 1)
    return (inputs, output) if len(set(output)) == len(output) and set(output) <= set(labels) else None


def _term(labels: str, shape: tuple[int, ...], kept: set[str], sizes: dict[str, int]) -> tuple[_Term, tuple[int, ...]]:
    """(preparation of an operand of which only the labels `kept` are to remain, its shape after it)."""
    diagonals = []
    names, lengths = list(labels), list(shape)
    for label in dict.fromkeys(labels):
        while names.count(label) > 1:
            i = names.index(label)
            j = names.index(label, i + 1)
            if lengths[i] != lengths[j]:
                raise ValueError(f"Size of label {label!r} differs within an operand: {lengths[i]} and {lengths[j]}")
            diagonals.append((i, j))
            n = lengths[i]
            for k in (j, i):
                del names[k], lengths[k]
            names.append(label)
            lengths.append(n)
    # An axis of length 1 whose label is longer elsewhere is broadcast: it takes no part.
    dropped = tuple(k for k, c in enumerate(names) if lengths[k] == 1 and sizes[c] != 1)
    names = [c for k, c in enumerate(names) if k not in dropped]
    lengths = [n for k, n in enumerate(lengths) if k not in dropped]
    summed = tuple(k for k, c in enumerate(names) if c not in kept)
    left = "".join(c for c in names if c in kept)
    return _Term(tuple(diagonals), dropped, summed, left), tuple(n for k, n in enumerate(lengths) if k not in summed)


def _step(
    positions: tuple[int, ...],
    operands: list[tuple[str, tuple[int, ...]]],
    wanted: str,
    final: bool,
    sizes: dict[str, int],
) -> tuple[_Step, str]:
    if len(operands) == 1:
        term, _ = _term(*operands[0], set(wanted), sizes)
        terms: tuple[_Term, ...] = (term,)
        result, numbers = term.labels, None
    else:
        present_a = {c for c, n in zip(*operands[0]) if n != 1 or sizes[c] == 1}
        present_b = {c for c, n in zip(*operands[1]) if n != 1 or sizes[c] == 1}
        left, _ = _term(*operands[0], set(wanted) | present_b, sizes)
        right, _ = _term(*operands[1], set(wanted) | present_a, sizes)
        shared = [c for c in left.labels if c in right.labels]
        batch = [c for c in shared if c in wanted]
        contracted = [c for c in shared if c not in wanted]
        numbers = (
            (tuple(left.labels.index(c) for c in contracted), tuple(right.labels.index(c) for c in contracted)),
            (tuple(left.labels.index(c) for c in batch), tuple(right.labels.index(c) for c in batch)),
        )
        result = "".join(
            [*batch, *(c for c in left.labels if c not in shared), *(c for c in right.labels if c not in shared)]
        )
        terms = (left, right)
    permutation = None
    if final and result != wanted:
        permutation = tuple(result.index(c) for c in wanted)
        result = wanted
    return _Step(positions, terms, numbers, permutation), result


def _prepare(x: Any, term: _Term, wanted: Any) -> Any:
    for i, j in term.diagonals:
        x = diagonal(x, 0, i, j)
    if term.dropped:
        x = lax.squeeze(x, term.dropped)
    if not term.summed:
        return x
    x = convert(x, wanted)
    return lax.reduce_or(x, term.summed) if x.dtype == np.bool_ else lax.reduce_sum(x, term.summed)


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable[..., Any] = lax.dot_general,
    out_sharding: Any = None,
) -> Any:
    """Sum of products over the axes that the subscripts name, as 'ij,jk->ik'; operands and lists of numbers may
    alternate.

    Raises ValueError if the subscripts do not fit the operands; `optimize` chooses the order of contraction.
    """
    refuse_out("einsum", out)
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    check_arraylike("einsum", *operands)
    expected = subscripts.split("->")[0].count(",") + 1
    if expected != len(operands):
        raise ValueError(
            f"Number of einsum subscripts, {expected}, must be equal to the number of operands, {len(operands)}."
        )
    element_type = None
    if preferred_element_type is not None:
        element_type = np.dtype(dtypes.check_user_dtype_supported(preferred_element_type, "einsum"))
    values = [as_array(x) for x in operands]
    wanted, weak = product_type(element_type, *values)
    if wanted != np.bool_ and sum(x.dtype == np.bool_ for x in values) != 1:
        values = [convert(x, wanted) if x.dtype == np.bool_ else x for x in values]  # sums count them, no "any"
    key = _order("einsum", optimize)
    for step in _plan(subscripts, tuple(x.shape for x in values), key):
        taken = [_prepare(values[k], term, wanted) for k, term in zip(step.positions, step.terms)]
        if step.numbers is None:
            result = taken[0]
        else:
            if expected == 2:
                check_terms(taken[0], taken[1], step.numbers[0], out_sharding)
            is_last = len(taken) == len(values)
            with asked(out_sharding if is_last or out_sharding is None else True):  # of other products nothing is said
                result = _dot_general(*taken, step.numbers, precision=precision, preferred_element_type=wanted)
        if step.permutation is not None:
            result = lax.transpose(result, step.permutation)
        values = [x for k, x in enumerate(values) if k not in step.positions]
        values.append(result)
    (result,) = values
    return out_placed("jnp.einsum", convert(result, wanted, weak), out_sharding)


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Operands and lists of axis numbers in turn, with the list of the result last if there is one, as a text and
    operands.
    """
    import opt_einsum

    if len(arguments) < 2 or not all(isinstance(labels, (list, tuple)) for labels in arguments[1::2]):
        raise TypeError(
            "einsum: argument 'subscripts' must be a string such as 'ij,jk->ik', or each operand must be followed by "
            f"the list of its labels; got {', '.join(map(shown, arguments))}"
        )
    arrays = [as_array(x) for x in arguments[: len(arguments) // 2 * 2 : 2]]
    plain: list[Any] = list(arguments)
    for k, x in enumerate(arrays):
        plain[2 * k] = np.broadcast_to(np.zeros((), np.int8), x.shape)
    if len(arguments) % 2:
        known = [Ellipsis, *(label for labels in arguments[1:-1:2] for label in labels)]
        missing = [label for label in arguments[-1] if label not in known]
        if missing:
            raise KeyError(f"einsum: label {missing[0]!r} of the result is in no operand's list of labels")
    inputs, output, _ = opt_einsum.parser.parse_einsum_input(plain)
    return f"{inputs}->{output}", tuple(arrays)


def _order(name: str, optimize: Any) -> Any:
    """How contractions are ordered: a bool, a name, or a path of positions; TypeError for anything else."""
    if optimize is None:
        return False
    if isinstance(optimize, (str, bool)):
        return optimize
    try:
        path = tuple(p if p == "einsum_path" else tuple(map(operator.index, p)) for p in optimize)
    except (TypeError, ValueError):
        path = ("",)
    if any(isinstance(p, str) for p in path[1:]) or path[:1] == ("",):
        raise TypeError(f"{name}: argument 'optimize' must be a bool, a name or a list of positions, got {optimize!r}")
    return path


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[tuple[int, ...]], Any]:
    """(order of contractions, description of their cost) that `einsum` would use."""
    import opt_einsum

    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else [tuple(range(len(operands)))]
    return opt_einsum.contract_path(subscripts, *operands, optimize=optimize)
