"""What the tests of the extension share: avals without the rest of pullback, and small native programs."""

import functools

import llvmlite.binding as llvm
import numpy as np
import pytest

from pullback._ext import _core


class Aval:
    """The least that the extension asks of an aval; interned by `aval`."""

    def __init__(self, shape, dtype, weak_type):
        self.shape, self.dtype, self.weak_type = shape, dtype, weak_type

    def str_short(self, short_dtypes=True):
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"

    __repr__ = str_short


@functools.cache
def _aval(shape, dtype, weak_type):
    return Aval(shape, dtype, weak_type)


def make_aval(shape, dtype="float32", weak_type=False):
    return _aval(tuple(shape), np.dtype(dtype), weak_type)


def make_array(values, dtype=None, weak_type=False):
    x = np.array(values, dtype or np.asarray(values, np.float32).dtype)
    return _core.from_numpy(x, make_aval(x.shape, x.dtype, weak_type))


@pytest.fixture
def aval():
    return make_aval


@pytest.fixture
def array():
    return make_array


@pytest.fixture
def hooks():
    """set_hooks whose changes end with the test."""
    changed = []

    def set_hooks(**named):
        changed.append(_core.set_hooks(**named))

    yield set_hooks
    for before in reversed(changed):
        _core.set_hooks(**before)


@pytest.fixture
def operators():
    """set_operators whose changes end with the test."""
    changed = []

    def set_operators(table):
        changed.append(_core.set_operators(table))

    yield set_operators
    for before in reversed(changed):
        _core.set_operators(before)


@functools.cache
def _target_machine():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(jit=True)


@functools.cache
def compile_ir(body, declarations=""):
    """(address, owner) of the function `f(ptr %in, ptr %out, ptr %arena)` with the given body of LLVM IR."""
    for name, address in _core.symbol_addresses().items():
        llvm.add_symbol(name, address)
    module = llvm.parse_assembly(f"{declarations}\ndefine i32 @f(ptr %in, ptr %out, ptr %arena) {{\n{body}\n}}\n")
    engine = llvm.create_mcjit_compiler(module, _target_machine())
    engine.finalize_object()
    return engine.get_function_address("f"), engine


def load_pointers(inputs, outputs):
    """IR that loads the addresses %in0, ... and %out0, ..."""
    lines = []
    for kind, count in (("in", inputs), ("out", outputs)):
        for i in range(count):
            lines.append(f"%{kind}{i}p = getelementptr ptr, ptr %{kind}, i64 {i}")
            lines.append(f"%{kind}{i} = load ptr, ptr %{kind}{i}p")
    return "\n".join(lines) + "\n"


ADD_ONE = (
    load_pointers(1, 1)
    + """
%x = load float, ptr %in0
%y = fadd float %x, 1.0
store float %y, ptr %out0
ret i32 0"""
)


@pytest.fixture
def program():
    """program(body, in_avals, out_avals, declarations="", **options) -> Executable"""

    def make(body, in_avals, out_avals, declarations="", **options):
        address, owner = compile_ir(body, declarations)
        return _core.Executable(address, in_avals, out_avals, keepalive=owner, **options)

    make.pointers = load_pointers
    make.add_one = ADD_ONE
    return make
