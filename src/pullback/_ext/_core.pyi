"""Interface of the native runtime. The headers in ext/ state the contracts in full."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Self

import numpy as np

# Of avals only the attributes shape, dtype and weak_type are read (and str_short() for messages).
Aval = Any

# ---- arrays (ext/arrays/array.h, operators.h, dlpack.h) -------------------------------------------------------------

class Array:
    """An immutable n-dimensional array in memory: C-contiguous, aligned to 64 bytes. Made by functions; its class
    makes one of arrays of single devices (hook `assemble`).
    """

    def __new__(cls, aval: Aval, sharding: Any, arrays: Any, committed: bool, _skip_checks: bool = ...) -> Array: ...
    aval: Final[Aval]
    shape: Final[tuple[int, ...]]
    dtype: Final[np.dtype]
    ndim: Final[int]
    size: Final[int]
    nbytes: Final[int]
    itemsize: Final[int]
    weak_type: Final[bool]
    committed: Final[bool]
    _made: Final[int]  # the number of the last trace that had begun by then
    _device: Final[Any]  # the device that the array is committed to, or None
    @property
    def device(self) -> Any: ...  # that of _device (a sharding if several), or where it was made (set_home)
    @property
    def sharding(self) -> Any: ...  # what the hook sharding(self) returns
    @property
    def T(self) -> Array: ...  # by the operator 'transpose' where C does not know it
    def item(self, *args: Any) -> Any: ...
    def tolist(self) -> Any: ...
    def delete(self) -> None: ...
    def is_deleted(self) -> bool: ...
    def block_until_ready(self) -> Array: ...
    def copy_to_host_async(self) -> None: ...
    def is_ready(self) -> bool: ...
    def addressable_data(self, index: int, /) -> Array: ...
    def unsafe_buffer_pointer(self) -> int: ...
    def on_device_size_in_bytes(self) -> int: ...
    def __array__(self, dtype: Any = None, context: Any = None, copy: bool | None = None) -> np.ndarray: ...
    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __getattr__(self, name: str) -> Any: ...  # what set_array_attribute put on the type
    # every operator calls the table given to set_operators

def from_numpy(x: np.ndarray, aval: Aval, device: Any = None, copy: bool = False) -> Array:
    """The contents of `x` (cast if the dtype differs; the shape must agree). Unless `copy`, memory is shared where it
    is C-contiguous and aligned to 64 bytes; the caller then promises that nobody writes to it."""

def copy_of(x: np.ndarray, dtype: np.dtype, weak_type: bool, device: Any, /) -> Array:
    """A copy of the contents of `x`, cast if the dtype differs; found without Python for shapes seen lately."""

def zeros(aval: Aval, device: Any = None) -> Array: ...
def writable(aval: Aval, device: Any = None) -> tuple[Array, np.ndarray]:
    """A new Array with undefined contents, and a writable ndarray over its memory to fill it before anyone sees it."""

def with_aval(x: Array, aval: Aval, device: Any = None) -> Array:
    """The same memory under another aval of as many bytes (reshape, bitcast, weak type), on `device` or none."""

def part_of(x: Array, index: Any, value: Any = ..., /) -> Array | None:
    """x[index] for integers and slices that lie inside, a new Array; with a value (an Array of this dtype, or a number
    that it has), x with that there. None while tracing and for all else, which Python must see to."""

def from_dlpack(capsule: Any, copy: bool | None = None) -> Array: ...
def set_operators(table: dict[str, Callable[..., Any] | None]) -> dict[str, Any]:
    """Names: add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod rdivmod pow rpow matmul
    rmatmul and rand or ror xor rxor lshift rlshift rshift rrshift lt le eq ne gt ge neg pos abs invert getitem iter
    contains. 'radd' is called as radd(array, other) for other + array. NotImplemented may be returned. Returns what
    was set before."""

def places_of(args: tuple[Any, ...], /) -> tuple[Any, ...] | None:
    """The Device or Sharding that each of some arguments is committed to, or None; None if none is and no mesh is in
    force."""

def set_array_attribute(name: str, value: Any, only_shown: bool = False, /) -> None:
    """Puts a function (as method), property or other descriptor on the type Array. `only_shown`: who asks the type
    finds it, the operator itself stays what it is."""

def set_hooks(
    *,
    make_aval: Callable[[tuple[int, ...], np.dtype, bool], Aval] | None = ...,
    repr: Callable[[np.ndarray, bool], str] | None = ...,  # set by pullback._ext
    reconstruct: Callable[[np.ndarray, bool], Array] | None = ...,  # unpickles; a module-level function
    first_device: Callable[[], Any] | None = ...,
    sharding: Callable[[Array], Any] | None = ...,
    leaf: Callable[[Any], tuple[Hashable, Array] | None] | None = ...,
    asarray: Callable[[Any], Array] | None = ...,
    tracer: type | None = ...,
    device: type | None = ...,
    placement: Callable[[Any, tuple[Any, ...], str, Sequence[Aval]], tuple[Any, ...]] | None = ...,
    assemble: Callable[..., Array] | None = ...,
) -> dict[str, Any]:
    """Hands Python functions to the extension; returns those that they replace.

    `leaf(x)` is asked about arguments of jitted functions that C does not know: it returns (key, Array) for what is an
    array in disguise (a PRNG key array: key = its dtype), or None to go through `miss`. `asarray(x)` converts a NumPy
    or Python value that C cannot convert exactly as the program wants it. Instances of `tracer` always go through
    `miss`. `placement(placing, places of the arguments, name, avals of the results)` gives the place of each result
    where arguments lie on a mesh or apart, or a program says where values lie (ext/arrays/placement.h); after these,
    where results are left to be summed, a function of arguments and results that is called when these are there."""

# ---- what calls depend on beside their arguments (ext/calls/trace_state.h) ------------------------------------------

def check_main_interpreter() -> None:
    """Raises ImportError in a subinterpreter."""

def set_tracing(active: int) -> None:
    """2: tracing, and the interpreter in force is given eager functions as jaxprs (ext/calls/transformed.h)."""

def set_interpreter_variable(variable: Any, /) -> None:
    """Says which ContextVar has the interpreter in force."""

def set_has_mesh(active: bool) -> None:
    """Whether a mesh of devices is in force in the calling thread, on which results lie."""

def set_home(process: Any, has: bool, thread: Any) -> None:
    """On which device new arrays lie that are committed to none (None: the first): in all threads that do not say it,
    and in the calling one if it `has` an opinion."""

def begin_trace() -> int:
    """The number of a new trace; arrays made from now on have at least that."""

def asked_work() -> float:
    """Inside of a miss() of an eager function: elements that calls like this one, of any size, have handled since the
    last one."""

def is_tracing() -> bool: ...
def set_trace_context_token(token: Hashable) -> None:
    """The process-wide configuration; part of the key of every call cache. Equal tokens mean the same configuration."""

def set_thread_context_token(token: Hashable | None) -> None:
    """What the calling thread overrides; also part of the key."""

def calling_line(is_users: dict[str, bool], scopes: Any, kind: type, /) -> Any:
    """The innermost frame in a file of the user's as kind(file, line, function, value of the ContextVar `scopes`), or
    None. `is_users` maps names of files; its __missing__ is asked for others (ext/source.h)."""

def post_order(roots: tuple[Any, ...], op: type, load: type, /) -> tuple[Any, ...]:
    """Every expression reachable from `roots`, once each, operands before users. Operands are what the slots `args` of
    an `op` and `index` of a `load` hold (ext/post_order.h)."""

def static_form(value: Any, /) -> Any:
    """An object that is == to that of another value of the same type where both mean the same program: the types of a
    tuple's items and the signs of zeros count."""

# ---- memory and threads (ext/arrays/allocator.h, thread_pool.h) -----------------------------------------------------

ALIGNMENT: int  # bytes, of arrays' memory and of what lies in scratch memory
SHARED_BYTES: int  # larger results that are parts or other shapes of an array share its memory
DECIDES: int  # elements of an array from which on an eager function's first call of a kind goes to its miss
SUM_BLOCK: int  # the order of sums of floats (ext/programs/sum_order.h)
SUM_FEW: int
SUM_CHAIN: int
SUM_STEPS: int
FEWEST: int  # elements that must fit where a kernel of a function reads and writes: no vector has more
LARGE: int  # elements from which on eager elementwise work is done by kernels for blocks
COMPILATION: int  # nanoseconds that a compilation takes, about (ext/calls/cache_entry.h)
PAYS: int  # elements that NumPy handles in about the time that one compilation takes
BLOCK_ARENA: int  # bytes of scratch memory that a kernel for blocks may need

def memory_stats() -> dict[str, int]: ...
def trim_memory(keep: int = 0) -> None: ...
def set_memory_cache_limit(bytes: int) -> None: ...
def set_num_threads(n: int) -> None:
    """How many threads a parallel loop uses, the caller included. ValueError if n < 1."""

def num_threads() -> int: ...

load_object: Callable[[bytes, tuple[str, ...]], tuple[list[int], Any]] | None
"""(object file, symbols) -> (their addresses in memory, what keeps the code there); None where programs are not ELF."""

CPU_LEVEL: int  # of x86-64, as the ABI of System V numbers them: 3, 4, or less than that

def function_of_kernel(name: str, address: int, types: tuple[Any, ...], owner: Any, /) -> Any:
    """A ufunc of NumPy's with one loop: that of a kernel of a function (ext/programs/functions.h), which `owner` keeps.
    `types` are the dtypes of the operands and of the result."""

def clear_call_caches() -> None:
    """Has all JitFunctions forget their programs."""

def track_anew(objects: list[Any]) -> None: ...
def sweep_avals() -> None:
    """Forgets avals that nobody uses."""

def call_library(function: Callable[..., Any], operands: tuple[Any, ...], params: dict[str, Any], /) -> Any:
    """function(*operands, **params) as in a program: results that would be denormal are zero, and forks wait."""

def hold_libraries(seconds: float, /) -> None:
    """Waits until no other thread is in a library, at most so long, and keeps them out until `release_libraries()`."""

def release_libraries() -> None: ...
def release_libraries_in_child() -> None:
    """The same in the child of a fork."""

def set_blas_control(get: int, set: int) -> None: ...  # addresses of int get(void), void set(int) of the BLAS
def blas_begin() -> None: ...  # from now on on the calling thread alone, until as many have ended
def blas_end() -> None: ...
def standalone_archive() -> bytes: ...  # the static library that exported programs are linked with
def symbol_addresses() -> dict[str, int]:
    """C functions for generated code:
    void pb_parallel_for(void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx, int64_t n, int64_t grain)
    void pb_blas_begin(void), pb_blas_end(void)             blas_begin, blas_end
    int  pb_interrupt_pending(void)                         nonzero: return 2 from the program soon
    int  pb_step(int64_t step, int64_t steps, int64_t loop) the same, of a loop that is counted (progress.h)
    int  pb_span(int64_t program, int64_t kernel, int64_t edge) a kernel begins (0), or has ended (1) (spans.h)
    int  pb_host_call(void *record, void **buffers)         nonzero: return that from the program at once
    int  pb_host_call_index(int64_t index, void **buffers)  callable number `index` of the running Executable
    """

# ---- programs (ext/programs/executable.h) ---------------------------------------------------------------------------

def register_host_call(function: Callable[[tuple[int, ...]], Any], count: int) -> int:
    """A record for pb_host_call; `function` gets a tuple of the `count` addresses. Kept until released."""

def release_host_call(record: int) -> None: ...
def watch_progress(wanted: bool, /) -> None:
    """Whether the loops of programs say how far they are."""

def read_progress() -> tuple[int, int, int, int, bool, str | None]:
    """(number of the run of a loop, number of the loop in its program, steps done, all steps or 0, whether its program
    still runs, the program's name while it does).
    """

def record_spans(wanted: bool, /) -> None:
    """Whether runs of programs are written down, and kernels that say when they begin and end (programs/spans.h)."""

def take_spans() -> tuple[list[tuple[str, str, int, int, int]], list[tuple[int, int, int, int, int, int]], int]:
    """(runs, kernels, how many were too many) since the last time. A run: name, "program", "plan" or "devices", thread,
    beginning and end in ns; a kernel: numbers of program, kernel and device, thread, beginning and end.
    """

# ---- foreign functions (ext/programs/foreign.h) ----------------------------------------------------------------------

def register_foreign(name: str, handlers: tuple[int, int, int, int], original: bool) -> None:
    """Handlers by stage (addresses, 0: none), or a plain C function as the last. JaxRuntimeError for another one."""

def register_foreign_type(name: str, type_id: int, type_info: int) -> None:
    """A type of states by the addresses of its id, which may be written, and of its information (0 for none)."""

class ForeignFunction:
    """One place of a program that calls a registered function; JaxRuntimeError if there is none of that name.

    version: 1 for f(out, in), else the typed interface. operands, results: (XLA's type, shape, bytes, result whose
    memory it shares or -1). attributes: (name, kind, XLA's type, elements, bytes or such a tuple), sorted by name.
    """

    def __new__(
        cls, name: str, version: int, operands: tuple[Any, ...], results: tuple[Any, ...], attributes: tuple[Any, ...]
    ) -> ForeignFunction: ...
    def __call__(self, addresses: tuple[int, ...]) -> None: ...

class Executable:
    """A native program: int f(void **inputs, void **outputs, void *arena), returning 0 if all went well."""

    def __init__(
        self,
        address: int,
        in_avals: Sequence[Aval],
        out_avals: Sequence[Aval],
        arena_bytes: int = 0,
        keepalive: Any = None,
        constants: Sequence[Array] = (),
        *,
        # (function, number of buffers); foreign functions are called without Python
        host_calls: Sequence[tuple[Callable[[tuple[int, ...]], Any], int]] = (),
        forward: Sequence[int] | None = None,  # per output: input (constants after inputs) that it plainly is, or -1
        alias: Sequence[int] | None = None,  # per output: donated input whose memory it may take over, or -1
        donate: Sequence[int] = (),  # inputs that are deleted by a call
        release_gil: bool = False,
        interruptible: bool = False,  # the program asks pb_interrupt_pending
        apart: bool = False,  # has long calls that cannot be interrupted: from the main thread they run on another one
        libraries: bool = False,  # calls libraries, which forks wait for
        name: str = "",
        plan: Sequence[tuple[Any, ...]] | None = None,  # steps (ext/programs/plan.h); address is 0
        blocks: tuple[Any, ...] | None = None,  # (length, elements of an operand, blocks worth
        # a thread, the kernel's scratch, bytes of an element by input and output or 0): ext/programs/blocks.h
        placing: Any = None,  # what the hook `placement` goes by
        places: bool = False,  # the program itself says where some value lies
    ) -> None:
        """An aliased output gets the address of its input if that memory is not shared with anyone, else memory of its
        own: the program must be right either way. Forwarded outputs have a null address in `outputs`."""
    def call(self, inputs: Sequence[Array | float]) -> list[Array]: ...
    __call__ = call
    in_avals: Final[tuple[Aval, ...]]
    out_avals: Final[tuple[Aval, ...]]
    constants: Final[tuple[Array, ...]]
    keepalive: Final[Any]
    address: Final[int]
    arena_bytes: Final[int]
    name: Final[str]

class DeviceProgram:
    """An Executable that several devices run at once, each on a thread of its own (ext/threads/device_program.h)."""

    def __init__(
        self,
        executable: Executable,
        size: int,
        mapped_in: Sequence[bool | tuple[int, ...]],  # per input: whether each device takes a part, or which one
        out_avals: Sequence[Aval],  # of the whole results
        mapped_out: Sequence[bool],  # per result: all devices' along a leading axis, or that of device 0
        shardings: Sequence[Any],  # per result: its `device`
        communication: Any = None,  # what its collective operations are: of `communication`
        /,
    ) -> None: ...
    def __call__(self, inputs: Sequence[Array], /) -> list[Array]:
        """Raises what a device raised (of several the lowest), RuntimeError where devices wait in vain."""
    executable: Final[Executable]

# ---- several processes (ext/collectives) ----------------------------------------------------------------------------

def communication(
    processes: Sequence[int],  # of each device of the mesh
    local: Sequence[int],  # the numbers of this process's devices, one for each thread of the program
    sites: tuple[tuple[Any, ...], ...],  # pullback.lax.collectives.native.sites_of
    fingerprint: int,
    /,
) -> Any:
    """What a program's collective operations are."""

def connect_processes(
    functions: dict[str, int],  # MPI's, by name
    rank: int,
    size: int,
    data: int,  # handles of communicators
    notes: int,
    byte: int,  # handle of MPI_BYTE
    any_source: int,
    any_tag: int,
    request_bytes: int,
    source_at: int,  # where a status has them
    tag_at: int,
    tag_limit: int,
    pids: tuple[int, ...],  # of the processes on this host; 0 for others
    timeout: float,
    trace: bool,
) -> None: ...
def exchange_bytes(messages: tuple[tuple[bool, int, int, Any], ...], what: str, /) -> None:
    """Sends and receives (sends, process, tag, buffer); RuntimeError where it cannot be done."""

def process_failure() -> str | None:
    """Why the processes cannot go on together; None if they can."""

def fail_processes(reason: str, tell: bool = True, /) -> None:
    """Gives up, and tells the other processes."""

def name_step(tag: int, text: str, /) -> None:
    """Says what errors call messages with this tag."""

def part_processes(seconds: float, /) -> None:
    """Says that this process ends after a failure, and waits for the others to say so."""

# ---- the call cache of jit (ext/calls/call_cache.h) -----------------------------------------------------------------

class CacheEntry:
    """What to do on a hit: pick the kept leaves, run, put the outputs together.

    `run` is an Executable, or any callable list[Array] -> sequence of outputs. `kept` numbers the leaves that are
    passed on, in the order of flattening (positional ones without the static ones, then keyword arguments sorted by
    name); None: all of them.
    `out_tree` is the PyTreeDef of the result (of _core.pytree). After `uses` hits (0: never) miss is asked again; the
    entry stays in use if it gives none."""

    def __init__(
        self,
        run: Executable | Callable[[list[Array]], Sequence[Any]],
        out_tree: Any,
        kept: Sequence[int] | None = None,
        uses: int = 0,
    ) -> None: ...
    run: Final[Any]
    out_tree: Final[Any]
    kept: Final[tuple[int, ...] | None]

class JitFunction:
    """A callable that remembers, by the types of its arguments, which program to run.

    miss(args, kwargs) -> (result, CacheEntry | None) is called for arguments that are new or that need Python (tracers,
    an active trace, unknown types). An entry is kept for the key of the arguments. `result` is returned as it is."""

    def __new__(
        cls,
        fun: Callable[..., Any],
        miss: Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, CacheEntry | None]],
        static_argnums: Sequence[int] = (),  # negative: counted from the last positional argument
        static_argnames: Sequence[str] = (),
        maxsize: int = 4096,
        warmup: int | None = None,
        literal_argnums: Sequence[int] = (),  # static where the argument is a Python int or bool
        literal_argnames: Sequence[str] = (),  # the same, by keyword
        static_keywords: bool = False,  # all keyword arguments are static
        while_tracing: bool = False,  # works while the thread traces, too
        known: dict[Any, tuple[Any, Any] | Any] = ...,  # eager, where set_tracing(2) was said: jaxprs of calls by key
        find: Callable[  # (key, args, kwargs) -> a jaxpr not there
            [tuple[Any, ...], tuple[Any, ...], dict[str, Any]], tuple[Any, Any] | None
        ] = ...,
    ) -> Self:
        """With `warmup` the function is eager: calls that need Python, and the first `warmup` calls of each key, go to
        `fun` itself; then `miss` is asked for an entry, and each time that it gives none, the wait doubles."""
    __wrapped__: Callable[..., Any]
    __dict__: dict[str, Any]
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any: ...
    def cache_size(self) -> int: ...
    def clear(self) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

def named_after(wrapper: Any, fun: Any, /) -> Any:
    """The function `wrapper` with the name, module, docstring and annotations of `fun`, and __wrapped__: what
    functools.wraps does without its attributes."""

class pytree:  # a submodule (ext/pytree/pytree.h); util/pytree.py has the documentation
    class PyTreeDef:
        num_leaves: Final[int]
        num_nodes: Final[int]
        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: Any, /) -> list[Any]: ...
        def children(self) -> list[pytree.PyTreeDef]: ...
        def node_data(self) -> tuple[type, Any] | None: ...
        def compose(self, inner: pytree.PyTreeDef, /) -> pytree.PyTreeDef: ...
        def walk(
            self, f_node: Callable[..., Any], f_leaf: Callable[..., Any] | None, leaves: Iterable[Any], /
        ) -> Any: ...
        def from_iterable_tree(self, tree: Any, /) -> Any: ...
        @staticmethod
        def from_node_data_and_children(
            registry: Any, node_data: tuple[type, Any] | None, children: Iterable[pytree.PyTreeDef], /
        ) -> pytree.PyTreeDef: ...
        def __hash__(self) -> int: ...

    class DictKey:
        key: Final[Hashable]
        __match_args__: Final = ("key",)
        def __init__(self, key: Hashable) -> None: ...

    class SequenceKey:
        idx: Final[int]
        __match_args__: Final = ("idx",)
        def __init__(self, idx: int) -> None: ...

    class GetAttrKey:
        name: Final[str]
        __match_args__: Final = ("name",)
        def __init__(self, name: str) -> None: ...

    class FlattenedIndexKey:
        key: Final[int]
        __match_args__: Final = ("key",)
        def __init__(self, key: int) -> None: ...

    flatten: Any
    leaves: Any
    structure: Any
    all_leaves: Any
    flatten_with_path: Any
    tree_map: Any
    broadcast: Any
    one_level: Any
    is_node: Any
    register_node: Any
    register_dataclass_node: Any
    treedef_tuple: Any
