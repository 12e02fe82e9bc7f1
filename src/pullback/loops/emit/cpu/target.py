"""What the emitter must know of a CPU: its name and features for LLVM, and how wide its vectors are.

LLVM is loaded by whoever asks for this machine's: that takes 60 ms, and the first eager sum wants prices alone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pullback.util.cpu_levels import LEVELS
from pullback.util.record import frozen_record
from pullback.util.switches import switches
from pullback.util.tile_permission import tiles_are_ours


@frozen_record
class Target:
    """A CPU; equal targets share compiled code."""

    triple: str
    cpu: str
    features: str  # LLVM's "+avx2,-avx512f,..."
    vector_bytes: int  # of the widest registers worth using
    tune: str = ""  # LLVM's name of the CPU on which the code should be fastest, if another than `cpu`

    @property
    def converts_halves(self) -> bool:
        """Whether it has instructions from half precision to single and back."""
        listed = self.features.split(",")
        return "-f16c" not in listed and (self.cpu != "x86-64" or "+f16c" in listed)

    @property
    def fuses(self) -> bool:
        """Whether its features have instructions that round a product and a sum once."""
        return "+fma" in self.features.split(",")

    @property
    def looks_up(self) -> int:
        """Entries of the tables of f32 in which one instruction finds one for each lane: 16 (AVX-512), 8 (AVX2) or 0.

        A vector's width alone does not say so: LLVM makes them of narrower registers, too. A CPU that is named without
        a list of features has what its width needs.
        """
        for width, feature in ((64, "+avx512f"), (32, "+avx2")):
            if self.vector_bytes >= width and (not self.features or feature in self.features.split(",")):
                return width // 4
        return 0

    @property
    def scales(self) -> bool:
        """Whether an instruction multiplies by powers of two: AVX-512."""
        return self.looks_up == 16

    @property
    def picks(self) -> int:
        """Bytes of the smallest elements that an instruction picks from any lanes of two registers: 1 (AVX512-VBMI), 2
        (AVX-512) or 0.
        """
        features = self.features.split(",")
        if self.vector_bytes < 64 or (self.features and not {"+avx512bw", "+avx512vl"} <= set(features)):
            return 0
        return 1 if "+avx512vbmi" in features else 2

    @property
    def dots_pairs(self) -> bool:
        """Whether an instruction multiplies pairs of bf16 and adds them to a float: AVX512-BF16."""
        return self.vector_bytes == 64 and "+avx512bf16" in self.features.split(",")

    @property
    def multiplies_tiles(self) -> bool:
        """Whether instructions multiply tiles of bf16 and of integers of 8 bits, and the system lets us: AMX."""
        features = self.features.split(",")
        return self.vector_bytes == 64 and all(f"+amx-{name}" in features for name in ("tile", "bf16", "int8"))

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


def registers_of(vector_bytes: int) -> int:
    """The number of vector registers: 32 with AVX-512, else 16."""
    return 32 if vector_bytes == 64 else 16


def target_of_features(features: tuple[str, ...], tune: str = "") -> Target:
    """An x86-64 CPU with these features and no others, for machines of this one's system."""
    import llvmlite.binding as llvm

    text = ",".join(f"+{feature}" for feature in features)
    width = vector_bytes(dict.fromkeys(features, True))
    return Target(llvm.get_process_triple(), "x86-64", text, width, tune)


def host_target() -> Target:
    """The CPU that this process makes code for: the one it runs on, or the lesser level that PULLBACK_CPU names.

    Raises ValueError where this CPU is less than that level.
    """
    return target_of(switches.cpu)


@functools.cache
def target_of(name: str) -> Target:
    """The CPU of a level's name, or 'host'. Raises ValueError where this one is less than that."""
    import llvmlite.binding as llvm

    features = dict(llvm.get_host_cpu_features())
    triple = llvm.get_process_triple()
    if features.get("amx-tile") and not tiles_are_ours():
        features.update({feature: False for feature in features if feature.startswith("amx-")})
    if name != "host":
        if not triple.startswith("x86_64"):
            raise ValueError(f"PULLBACK_CPU={name!r}: a level of x86-64, and this machine is {triple}; expected 'host'")
        if missing := [feature for feature in LEVELS[name] if not features.get(feature)]:
            raise ValueError(
                f"PULLBACK_CPU={name!r}: this CPU ({llvm.get_host_cpu_name()}) could not run the code, for want of "
                f"{', '.join(missing)}; expected 'host' or a level that it has"
            )
        return target_of_features(LEVELS[name])
    text = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Target(triple, llvm.get_host_cpu_name(), text, vector_bytes(features))


_chosen: ContextVar[Target | None] = ContextVar("pullback_target", default=None)


def current_target() -> Target:
    """The CPU that programs are lowered for: that of this process, unless `target_scope` says otherwise."""
    return _chosen.get() or host_target()


@contextmanager
def target_scope(target: Target) -> Iterator[None]:
    """Programs lowered inside are for `target`."""
    token = _chosen.set(target)
    try:
        yield
    finally:
        _chosen.reset(token)
