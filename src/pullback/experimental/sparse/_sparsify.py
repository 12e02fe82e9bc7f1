"""`sparsify`: functions of dense arrays, on sparse ones.

The function is traced as if its arguments were dense, and the jaxpr is evaluated with sparse arrays among the values:
an equation without any runs as it is, one with some by the rule of its primitive. A rule takes the operands, of which
the sparse ones are BCOO, and the equation's parameters, and gives the result, or for control flow all results.

Bodies of control flow take sparse arrays as trees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pullback.numpy as jnp
from pullback import api, lax, tree_util
from pullback.api import _arguments as arguments
from pullback.core import JaxprEqn, Literal
from pullback.experimental.sparse import _indexing as indexing
from pullback.experimental.sparse import _products as products
from pullback.experimental.sparse import _shapes as shapes
from pullback.experimental.sparse import _structure as structure
from pullback.experimental.sparse._base import JAXSparse
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR
from pullback.experimental.sparse._sampled import bcoo_dynamic_slice
from pullback.lax.control.while_loop import with_scalar_condition
from pullback.util.static import check_flags
from pullback.util.tracebacks import api_boundary


def is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """`f`, written for dense arrays, as a function of sparse ones too.

    What is sparse of its results is BCOO, but BCSR where functions that keep zeros are applied to the entries of such
    or where they are broadcast, and of its own class where it is an argument.
    Raises NotImplementedError at operations that have no sparse form, such as those that do not keep zeros.
    `use_tracer`, which in JAX says how the function is read, changes nothing: it is traced to a jaxpr in both cases.
    """
    arguments.check_callable("sparsify", f)
    check_flags("sparsify", use_tracer=use_tracer)

    @api_boundary
    @functools.wraps(f, updated=())
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=is_sparse)
        as_dense = [api.ShapeDtypeStruct(x.shape, x.dtype) if is_sparse(x) else x for x in leaves]
        dense_args, dense_kwargs = tree_util.tree_unflatten(tree, as_dense)
        closed, out_tree = api.make_jaxpr(f, return_shape=True)(*dense_args, **dense_kwargs)
        values = [x if isinstance(x, BCSR) else x.to_bcoo() if is_sparse(x) else arguments.as_array(x) for x in leaves]
        given = {id(value): x for value, x in zip(values, leaves, strict=True) if is_sparse(x)}
        found = [given.get(id(x), x) for x in evaluate(closed, values)]  # what is only passed on keeps its class
        return tree_util.tree_unflatten(tree_util.tree_structure(out_tree), found)

    return sparsified


def evaluate(closed: Any, values: list[Any]) -> list[Any]:
    """The results of a closed jaxpr, of arrays and BCOO arrays."""
    jaxpr = closed.jaxpr
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *values], strict=True))

    def value(atom: Any) -> Any:
        return atom.operand if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        operands = [value(atom) for atom in eqn.invars]
        outs = _apply(eqn, operands) if any(map(is_sparse, operands)) else eqn.primitive.bind(*operands, **eqn.params)
        known.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _apply(eqn: JaxprEqn, operands: list[Any]) -> Any:
    name = eqn.primitive.name
    if name in _KEEP_ZERO or (name == "integer_pow" and eqn.params["y"] > 0):
        mat = operands[0]
        if name not in _LINEAR and not mat.unique_indices:
            mat = mat.to_bcoo().distinct()
        return mat.with_data(eqn.primitive.bind(mat.data, **eqn.params))
    if name != "broadcast_in_dim":  # which keeps rows
        operands = [x.to_bcoo() if isinstance(x, BCSR) else x for x in operands]
    if name not in _RULES:
        raise NotImplementedError(
            f"sparsify: {name} of a sparse array is not supported; where its result is dense, give the function "
            "todense() of the array"
        )
    return _RULES[name](*operands, **eqn.params)


# Functions of each element that keep zeros; of linear ones, entries of one place need not be summed before.
_LINEAR = {"neg", "real", "imag", "conj", "copy"}
_KEEP_ZERO = _LINEAR | {
    "abs", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cbrt", "ceil", "convert_element_type", "erf", "erf_inv",
    "expm1", "floor", "log1p", "round", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh",
}  # fmt: skip


def _same_places(x: Any, y: Any) -> bool:
    """Whether x and y are sparse arrays whose entries lie at the same places, as they do where one is made of the
    other.
    """
    return isinstance(x, BCOO) and isinstance(y, BCOO) and x.indices is y.indices and x.shape == y.shape


def _add(x: Any, y: Any) -> Any:
    if _same_places(x, y):
        return x.with_data(x.data + y.data)
    return products.add(x, y) if isinstance(x, BCOO) else products.add(y, x)


def _sub(x: Any, y: Any) -> Any:
    if _same_places(x, y):
        return x.with_data(x.data - y.data)
    return products.add(x, -y) if isinstance(x, BCOO) else products.add(-y, x)


def _mul(x: Any, y: Any) -> BCOO:
    if _same_places(x, y) and x.unique_indices:
        return x.with_data(x.data * y.data)
    return products.multiply(x, y) if isinstance(x, BCOO) else products.multiply(y, x)


def _div(x: Any, y: Any) -> BCOO:
    if isinstance(y, BCOO):
        raise NotImplementedError("sparsify: division by a sparse array has a dense result")
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        x = x.distinct()  # quotients of integers are rounded, so sums come before
    return products.divide(x, y, lambda data, by: lax.div(*jnp.broadcast_arrays(data, by)))


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any, **options: Any) -> Any:
    return products.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers, preferred_element_type=preferred_element_type
    )


def _reduce_sum(mat: BCOO, *, axes: Any, **options: Any) -> Any:
    found = structure.bcoo_reduce_sum(mat, axes=axes)
    return found if found.ndim else found.todense()


def _reshape(mat: BCOO, *, new_sizes: Any, dimensions: Any, **options: Any) -> BCOO:
    return shapes.bcoo_reshape(mat, new_sizes=new_sizes, dimensions=dimensions)


def _broadcast_in_dim(mat: BCOO | BCSR, *, shape: Any, broadcast_dimensions: Any, **options: Any) -> BCOO | BCSR:
    found = shapes.bcoo_broadcast_in_dim(mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions)
    return BCSR.from_bcoo(found) if isinstance(mat, BCSR) and found.n_sparse == 2 else found


def _concatenate(*operands: Any, dimension: int) -> BCOO:
    if not all(isinstance(x, BCOO) for x in operands):
        raise NotImplementedError("sparsify: concatenate of sparse and dense arrays")
    return shapes.bcoo_concatenate(operands, dimension=dimension)


# Bodies see sparse arrays as trees. What is known of the indices is part of the tree, and forgotten, so that it is the
# same before and after each step.


def _plain(values: Any) -> list[Any]:
    return [BCOO((x.data, x.indices), shape=x.shape) if isinstance(x, BCOO) else x for x in values]


def _inline(which: str) -> Callable[..., list[Any]]:
    return lambda *operands, **params: evaluate(params[which], list(operands))


def _scan(
    *operands: Any, jaxpr: Any, length: int, reverse: bool, num_consts: int, num_carry: int, unroll: Any, **options: Any
) -> list[Any]:
    consts, rest = list(operands[:num_consts]), _plain(operands[num_consts:])
    init, xs = rest[:num_carry], rest[num_carry:]
    if any(isinstance(x, BCOO) and not x.n_batch for x in xs):
        raise NotImplementedError("sparsify: scan over a sparse dimension; it must be a batch dimension (n_batch)")

    xs = [BCOO(structure.full(x), shape=x.shape) if isinstance(x, BCOO) else x for x in xs]

    def step(carry: Any, xs: Any) -> Any:
        outs = _plain(evaluate(jaxpr, [*consts, *carry, *xs]))
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(step, init, xs, length, reverse, unroll)
    return [*carry, *ys]


def _while(*given: Any, **options: Any) -> list[Any]:
    operands, params = with_scalar_condition(given, options)
    cond_jaxpr, body_jaxpr, cond_nconsts = params["cond_jaxpr"], params["body_jaxpr"], params["cond_nconsts"]
    start = cond_nconsts + params["body_nconsts"]
    for_cond, for_body = list(operands[:cond_nconsts]), list(operands[cond_nconsts:start])
    return lax.while_loop(
        lambda carry: evaluate(cond_jaxpr, for_cond + carry)[0],
        lambda carry: _plain(evaluate(body_jaxpr, for_body + carry)),
        _plain(operands[start:]),
    )


def _cond(index: Any, *operands: Any, branches: Any, **options: Any) -> list[Any]:
    def branch(jaxpr: Any) -> Callable[..., list[Any]]:
        return lambda *values: _plain(evaluate(jaxpr, list(values)))

    return lax.switch(index, [branch(jaxpr) for jaxpr in branches], *_plain(operands))


def _dynamic_slice(mat: Any, *starts: Any, slice_sizes: Any) -> Any:
    if any(map(is_sparse, starts)):
        raise NotImplementedError("sparsify: dynamic_slice at sparse indices")
    return bcoo_dynamic_slice(mat, starts, slice_sizes)


def _gather(mat: Any, indices: Any, *, mode: Any, dimension_numbers: Any, slice_sizes: Any, **options: Any) -> BCOO:
    if is_sparse(indices):
        raise NotImplementedError("sparsify: gather at sparse indices")
    return indexing.bcoo_gather(mat, indices, dimension_numbers, slice_sizes, mode=mode)


_RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "cond": _cond,
    "custom_jvp_call": _inline("call_jaxpr"),
    "custom_vjp_call": _inline("call_jaxpr"),
    "div": _div,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "jit": _inline("jaxpr"),
    "mul": _mul,
    "reduce_sum": _reduce_sum,
    "remat2": _inline("jaxpr"),
    "reshape": _reshape,
    "rev": lambda mat, dimensions: indexing.bcoo_rev(mat, dimensions),
    "scan": _scan,
    "slice": lambda mat, **bounds: indexing.bcoo_slice(mat, **bounds),
    "squeeze": lambda mat, dimensions: structure.bcoo_squeeze(mat, dimensions=dimensions),
    "sub": _sub,
    "todense": lambda mat: mat.todense(),
    "transpose": lambda mat, permutation: structure.bcoo_transpose(mat, permutation=permutation),
    "while": _while,
}
