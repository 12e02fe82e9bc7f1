"""The operations on the older formats as primitives of flat arguments, which saiunit and brainevent bind themselves.

`csr_matvec` and its like do not need them: each means what the function of that name computes, is compiled as that, and
takes its derivatives, transposes and batches from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import numpy as jnp
from pullback.api import eval_shape, jvp, linear_transpose, vmap
from pullback.core import Primitive, ShapedArray, Tracer, Zero, is_undefined_primal, trace
from pullback.core.lowering import InlineFunction
from pullback.experimental.sparse._base import JAXSparse
from pullback.experimental.sparse._matrices import COO, CSR, COOInfo, coo_fromdense, csr_fromdense, product
from pullback.transforms.zeros import instantiate


def primitive(name: str, function: Callable[..., Any], multiple_results: bool = False) -> Primitive:
    """The primitive that means function(*arrays, **params)."""

    def types(*avals: ShapedArray, **params: Any) -> Any:
        outs = eval_shape(functools.partial(function, **params), *avals)
        made = [ShapedArray(x.shape, x.dtype) for x in (outs if multiple_results else [outs])]
        return made if multiple_results else made[0]

    def derivative(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        moved = [k for k, t in enumerate(tangents) if type(t) is not Zero]
        out, out_dot = jvp(
            lambda *xs: function(*_with(primals, moved, xs), **params),
            tuple(primals[k] for k in moved),
            tuple(instantiate(tangents[k]) for k in moved),
        )
        return (list(out), list(out_dot)) if multiple_results else (out, out_dot)

    def transposed(x_bar: Any, *args: Any, **params: Any) -> list[Any]:
        linear = [k for k, x in enumerate(args) if is_undefined_primal(x)]
        avals = tuple(args[k].aval for k in linear)
        back = linear_transpose(lambda *xs: function(*_with(args, linear, xs), **params), *avals)
        bars = back(tuple(map(instantiate, x_bar)) if multiple_results else instantiate(x_bar))
        return _with([None] * len(args), linear, bars)

    def batched(args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        outs = vmap(functools.partial(function, **params), tuple(dims))(*args)
        return (list(outs), [0] * len(outs)) if multiple_results else (outs, 0)

    def body(avals: Sequence[ShapedArray], params: dict[str, Any]) -> Any:
        def whole(*xs: Any) -> list[Any]:
            out = function(*xs, **params)
            return list(out) if multiple_results else [out]

        return trace(whole, avals)

    def on_arrays(*args: Any, **params: Any) -> Any:
        out = function(*args, **params)
        return list(out) if multiple_results else out

    return Primitive(
        name,
        abstract_eval=types,
        jvp=derivative,
        transpose=transposed,
        batch=batched,
        lower=InlineFunction(trace=body),
        evaluate=on_arrays,
        multiple_results=multiple_results,
        register=False,
    )


def _with(values: Sequence[Any], places: Sequence[int], given: Sequence[Any]) -> list[Any]:
    new = list(values)
    for place, value in zip(places, given, strict=True):
        new[place] = value
    return new


def _coo(data: Any, row: Any, col: Any, spinfo: Any) -> COO:
    return COO((data, row, col), shape=spinfo.shape, rows_sorted=spinfo.rows_sorted, cols_sorted=spinfo.cols_sorted)


def _coo_fromdense(mat: Any, *, nse: int, index_dtype: Any = np.int32) -> tuple[Any, ...]:
    return coo_fromdense(mat, nse=nse, index_dtype=index_dtype).tree_flatten()[0]


def _csr_fromdense(mat: Any, *, nse: int, index_dtype: Any = np.int32) -> tuple[Any, ...]:
    return csr_fromdense(mat, nse=nse, index_dtype=index_dtype).tree_flatten()[0]


def _coo_todense(data: Any, row: Any, col: Any, *, spinfo: Any) -> Any:
    return _coo(data, row, col, spinfo).todense()


def _coo_product(data: Any, row: Any, col: Any, x: Any, *, spinfo: Any, transpose: bool = False) -> Any:
    return product(_coo(data, row, col, spinfo), x, transpose)


def _csr_todense(data: Any, indices: Any, indptr: Any, *, shape: Sequence[int]) -> Any:
    return CSR((data, indices, indptr), shape=shape).todense()


def _csr_product(data: Any, indices: Any, indptr: Any, x: Any, *, shape: Sequence[int], transpose: bool = False) -> Any:
    return product(CSR((data, indices, indptr), shape=shape), x, transpose)


def _csr_to_coo(indices: Any, indptr: Any) -> tuple[Any, Any]:
    """(row, col) of what lies by rows."""
    steps = jnp.zeros(indices.shape[0], indices.dtype).at[indptr[1:]].add(1, mode="drop")
    return jnp.cumsum(steps, dtype=indices.dtype), indices


def _coo_extract(row: Any, col: Any, mat: Any) -> Any:
    """The elements of a matrix at some places."""
    return mat[row, col]


def _csr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    return _coo_extract(*_csr_to_coo(indices, indptr), mat)


def todense(arr: Any) -> Any:
    """The array with all its elements, if it is sparse; otherwise itself."""
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return todense_p.bind(arr) if isinstance(arr, Tracer) else arr  # `sparsify` may know it as a sparse one


_coo_matvec = _coo_matmat = _coo_product
_csr_matvec = _csr_matmat = _csr_product

todense_p = primitive("todense", lambda x: x)
coo_fromdense_p = primitive("coo_fromdense", _coo_fromdense, multiple_results=True)
coo_todense_p = primitive("coo_todense", _coo_todense)
coo_matvec_p = primitive("coo_matvec", _coo_product)
coo_matmat_p = primitive("coo_matmat", _coo_product)
csr_fromdense_p = primitive("csr_fromdense", _csr_fromdense, multiple_results=True)
csr_todense_p = primitive("csr_todense", _csr_todense)
csr_matvec_p = primitive("csr_matvec", _csr_product)
csr_matmat_p = primitive("csr_matmat", _csr_product)

__all__ = [
    "COOInfo", "coo_fromdense_p", "coo_matmat_p", "coo_matvec_p", "coo_todense_p", "csr_fromdense_p", "csr_matmat_p",
    "csr_matvec_p", "csr_todense_p", "todense", "todense_p",
]  # fmt: skip
