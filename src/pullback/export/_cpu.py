"""Which CPU an exported library is for, and what it asks of the one it runs on.

The code is for a base CPU and a list of features; the library looks for these features at its first call (by cpuid), so
that it returns an error on a lesser CPU where an unknown instruction would end the process.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from pullback.loops.emit.cpu.target import Target, host_target, target_of_features
from pullback.util.cpu_levels import LEVELS
from pullback.util.record import frozen_record
from pullback.util.switches import switches

# Feature -> (leaf, register, bit) of cpuid; from Intel's and AMD's architecture manuals.
_CPUID = {
    "sse3": (1, "c", 0),
    "ssse3": (1, "c", 9),
    "fma": (1, "c", 12),
    "sse4.1": (1, "c", 19),
    "sse4.2": (1, "c", 20),
    "movbe": (1, "c", 22),
    "popcnt": (1, "c", 23),
    "avx": (1, "c", 28),
    "f16c": (1, "c", 29),
    "bmi": (7, "b", 3),
    "avx2": (7, "b", 5),
    "bmi2": (7, "b", 8),
    "avx512f": (7, "b", 16),
    "avx512dq": (7, "b", 17),
    "avx512cd": (7, "b", 28),
    "avx512bw": (7, "b", 30),
    "avx512vl": (7, "b", 31),
    "lzcnt": (0x80000001, "c", 5),
}
_OSXSAVE = (1, "c", 27)  # the system has said which registers it saves


@frozen_record
class Cpu:
    """A target, what it is called, and the features that it needs beyond what every CPU of its kind has."""

    target: Target
    name: str
    features: tuple[str, ...]

    @property
    def cpuid(self) -> list[tuple[int, str, int]]:
        """(leaf, register, bit) that must be set."""
        found = [_CPUID[name] for name in self.features]
        return [*found, _OSXSAVE] if "avx" in self.features else found

    @property
    def saved_registers(self) -> int:
        """Bits of the register XCR0 that must be set: the system saves these registers when it switches threads."""
        return 0xE6 if "avx512f" in self.features else 6 if "avx" in self.features else 0


def cpu_for(name: str) -> Cpu:
    """The CPU called `name`: 'host' or a level of x86-64; ValueError for others, and for levels on other machines.

    'host' is the CPU that this process makes code for itself: a level of it if PULLBACK_CPU says so.
    """
    target = host_target()
    x86 = target.triple.startswith("x86_64")
    if name == "host":
        name = switches.cpu
    if name == "host":
        if not x86:
            return Cpu(target, target.cpu, ())
        has = llvm.get_host_cpu_features()
        features = tuple(feature for feature in _CPUID if has.get(feature))
        return Cpu(target_of_features(features, target.cpu), "that of this machine", features)
    if x86 and name in LEVELS:
        return Cpu(target_of_features(LEVELS[name]), name, LEVELS[name])
    names = ["host", *LEVELS] if x86 else ["host"]
    raise ValueError(f"to_c: argument 'cpu' is {name!r}; expected one of {', '.join(map(repr, names))}")
