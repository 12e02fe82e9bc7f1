"""Python functions that programs call with the memory of their arguments and results, and that write the results."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.core import Primitive, ShapedArray
from pullback.core.explain import explain_all as _explain_all
from pullback.core.lowering import HostCall
from pullback.core.primitive import NoRule
from pullback.lax.control.callback import IO, as_operand, batch_of_call, result_avals
from pullback.util.errors import JaxRuntimeError
from pullback.util.pytree import tree_flatten, tree_unflatten


class Buffer:
    """Memory of an argument or result of a callback: np.asarray(buffer) is a view of it, np.from_dlpack(buffer) too.

    That of an argument is a copy, which may be kept; that of a result is to be written before the callback returns.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @property
    def dtype(self) -> np.dtype:
        """The type of its elements."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        """Whether it may be written."""
        return self._array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._array, dtype) if not copy else np.array(self._array, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class ExecutionStage(enum.Enum):
    """What of a program is being done when a callback is called; here it is always executed."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback is told of the call: its `stage`."""

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU; NotImplementedError, as there is none."""
        raise NotImplementedError("ExecutionContext.stream: programs on CPUs have no streams")


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of arrays that programs compute by `callback(context, out, *args, **kwargs)`.

    out: a tree like result_shape_dtypes (leaves with shape and dtype) of Buffers, to be written; args, kwargs: the
    arguments, with a Buffer for each array. It returns None, else, and where it raises, the program fails with a
    JaxRuntimeError. input_output_aliases: {number of an argument's leaf: number of a result's} for results that hold
    the argument at first. Without has_side_effect it may be called again, or not at all. vmap_method: as for
    `jax.pure_callback`. command_buffer_compatible changes nothing on a CPU.

    Raises ValueError for input_output_aliases that do not fit the arguments, and where it is differentiated.

    >>> import numpy as np
    >>> def double(context, out, x):
    ...     np.asarray(out)[...] = 2 * np.asarray(x)
    >>> f = buffer_callback(double, jax.ShapeDtypeStruct((2,), np.float32))
    >>> jax.jit(f)(jax.numpy.ones(2)).tolist()
    [2.0, 2.0]
    """
    if not callable(callback):
        raise TypeError(f"buffer_callback: argument 'callback' must be a function, got {callback!r}")
    avals, out_tree = result_avals("buffer_callback", result_shape_dtypes)
    aliases = tuple((input_output_aliases or {}).items())

    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        operands = [as_operand(leaf) for leaf in leaves]
        _check_aliases(aliases, [x.aval for x in operands], avals)
        outs = buffer_callback_p.bind(
            *operands,
            callback=_Flat(callback, in_tree, out_tree, avals, aliases),
            result_avals=avals,
            has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method,
            input_output_aliases=aliases,
            command_buffer_compatible=bool(command_buffer_compatible),
        )
        return tree_unflatten(out_tree, outs)

    return called


def _check_aliases(aliases: Sequence[tuple[int, int]], ins: Sequence[Any], outs: Sequence[Any]) -> None:
    """ValueError for numbers out of range, and for an argument and a result of different types."""
    for i, o in aliases:
        for number, kind, avals in ((i, "input", ins), (o, "output", outs)):
            if not 0 <= number < len(avals):
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' with {kind} index {number} outside the range "
                    f"[0, {len(avals)})."
                )
        if ins[i].shape != outs[o].shape or ins[i].dtype != outs[o].dtype:
            raise ValueError(
                f"buffer_callback: input_output_aliases lets output {o}, {outs[o].str_short()}, use the memory of "
                f"input {i}, but that is {ins[i].str_short()}"
            )


class _Flat:
    """A user's callback on flat lists of arrays; without a hash, as it may hold anything of the user's."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, function: Callable, in_tree: Any, out_tree: Any, avals: Sequence[ShapedArray], aliases: Any):
        self.function, self.in_tree, self.out_tree, self.avals = function, in_tree, out_tree, avals
        self.sources = {o: i for i, o in aliases}
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *arrays: np.ndarray, lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        outs = [np.empty((*lead, *a.shape), a.dtype) for a in self.avals]
        for o, i in self.sources.items():
            outs[o][...] = arrays[i]
        args, kwargs = tree_unflatten(self.in_tree, [Buffer(np.array(a)) for a in arrays])
        try:
            found = self.function(
                ExecutionContext(), tree_unflatten(self.out_tree, [Buffer(out) for out in outs]), *args, **kwargs
            )
        except Exception as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            raise JaxRuntimeError(f"Error when calling buffer callback {self.__name__}: {text}") from error
        if found is not None:
            raise JaxRuntimeError(
                f"Error when calling buffer callback {self.__name__}: it must return None, and returned {found!r}"
            )
        return outs


class _Batched:
    """A callback whose results have a batch axis in front."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, flat: Any, size: int):
        self.flat, self.size = flat, size

    def __call__(self, *arrays: Any, lead: tuple[int, ...] = ()) -> list[np.ndarray]:
        return self.flat(*arrays, lead=(*lead, self.size))


def _jvp(_primals: Any, _tangents: Any, **_params: Any) -> Any:
    raise ValueError(
        "Buffer callbacks do not support JVP: nothing is known of their derivatives. A function with jax.custom_jvp "
        "around the callback says them."
    )


def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    avals = tuple(a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"])
    batched = {**params, "callback": _Batched(params["callback"], axis.size), "result_avals": avals}
    return batch_of_call(buffer_callback_p, axis, args, dims, params, batched)


buffer_callback_p = Primitive(
    "buffer_callback",
    doc="A Python function that writes its results.",
    multiple_results=True,
    abstract_eval=lambda *_avals, result_avals, **_params: list(result_avals),
    reference=lambda *arrays, callback, **_params: callback(*arrays),
    jvp=_jvp,
    transpose=NoRule("Python functions have no known transpose"),
    batch=NoRule("use batch_axis"),
    batch_axis=_batch,
    lower=HostCall(),
    effects=lambda params: frozenset({IO}) if params["has_side_effect"] else frozenset(),
    traits={"opaque", "once"},
)

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
_explain_all(globals())
