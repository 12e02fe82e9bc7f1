"""What the emitter must know of a CPU: its name and features for LLVM, and how wide its vectors are."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import llvmlite.binding as llvm


@dataclass(frozen=True, slots=True)
class Target:
    """A CPU; equal targets share compiled code."""

    triple: str
    cpu: str
    features: str  # LLVM's "+avx2,-avx512f,..."
    vector_bytes: int  # of the widest registers worth using
    tune: str = ""  # LLVM's name of the CPU on which the code should be fastest, if another than `cpu`

    @property
    def attributes(self) -> str:
        """Function attributes of everything emitted: without the second, LLVM splits 512-bit vectors on many CPUs."""
        width = 8 * self.vector_bytes
        wide = f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"'
        tune = f' "tune-cpu"="{self.tune}"' if self.tune else ""
        return f'nounwind "no-trapping-math"="true" {wide}{tune}'


def vector_bytes(features: dict[str, bool]) -> int:
    """64 with AVX-512 (with its byte and double-word parts), 32 with AVX2, else 16 (SSE2, NEON)."""
    if all(features.get(name) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl")):
        return 64
    return 32 if features.get("avx2") else 16


@functools.cache
def host_target() -> Target:
    """The CPU this process runs on."""
    features = dict(llvm.get_host_cpu_features())
    triple = llvm.get_process_triple()
    text = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Target(triple, llvm.get_host_cpu_name(), text, vector_bytes(features))


_chosen: ContextVar[Target | None] = ContextVar("pullback_target", default=None)


def current_target() -> Target:
    """The CPU that programs are lowered for: this one, unless `target_scope` says otherwise."""
    return _chosen.get() or host_target()


@contextmanager
def target_scope(target: Target) -> Iterator[None]:
    """Programs lowered inside are for `target`."""
    token = _chosen.set(target)
    try:
        yield
    finally:
        _chosen.reset(token)
