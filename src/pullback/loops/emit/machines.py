"""LLVM's code generators, one for each CPU, and its linker."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm

from pullback.util.locks import Lock, held_at_fork

from .cpu.target import Target, host_target

LOCK = held_at_fork(Lock())
# Modules and code are given up under this lock of llvmlite's, and LLVM must not be copied in the middle of that either.
held_at_fork(getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None) or Lock())


_machines: dict[tuple[Target, bool], llvm.TargetMachine] = {}
_jits: list[llvm.LLJIT] = []
_count = 0


# Passes and parts of passes that leave our code as it is, or nearly. Over 99 modules those of the first three lines
# changed no byte, those of the next three the code of 2 to 15 modules, none longer: together a twentieth of code
# generation. Over 47 modules those of the seventh line changed no byte, those of the last two the code of 20, which is
# 0.3 % longer; together another sixteenth. Over 148 programs, run time without these is 1.00 of what it was, with
# AVX-512 and with AVX2. The rest of CodeGenPrepare must stay: it brings addresses to where they are used (without it a
# batch of Cholesky factors takes 1.1 times as long).
_NOTHING_TO_DO = (
    "-disable-mergeicmps", "-disable-partial-libcall-inlining", "-disable-select-optimize", "-disable-tail-duplicate",
    "-disable-early-taildup", "-disable-early-ifcvt", "-disable-atexit-based-global-dtor-lowering",
    "-disable-x86-domain-reassignment", "-pre-RA-sched=source",
    "-disable-postra-machine-licm", "-disable-machine-dce", "-x86-cmov-converter=0", "-disable-constant-hoisting",
    "-combiner-store-merging=false",
    "-disable-cgp-select2branch", "-disable-cgp-delete-phis", "-combiner-reduce-load-op-store-width=false",
    "-enable-global-merge=false", "-no-stack-coloring", "-x86-disable-avoid-SFB",
    "-disable-machine-cse", "-disable-machine-sink", "-disable-copyprop", "-disable-branch-fold",
    "-x86-machine-combiner=false",
)  # fmt: skip


def machine_of(target: Target, quick: bool = False) -> llvm.TargetMachine:
    """LLVM's code generator for a target, or one that optimizes nothing; made once."""
    machine = _machines.get((target, quick))
    if machine is None:
        if not _machines:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            # Scheduling is lost on processors that reorder by themselves, and takes a tenth of the time.
            llvm.set_option("pullback", "-disable-post-ra")
            llvm.set_option("pullback", "-enable-misched=false")
            # Our addresses are written with the parts that change least first: loop strength reduction finds nothing
            # to gain, and takes a sixth of the time. (Over 29 programs on one thread, run time without it is 0.99 of
            # what it was.)
            llvm.set_option("pullback", "-disable-lsr")
            for option in _NOTHING_TO_DO:
                llvm.set_option("pullback", option)
        machine = _architecture(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=0 if quick else 2, reloc="pic", codemodel="default"
        )
        machine.set_asm_verbosity(False)
        _machines[target, quick] = machine
    return machine


def _architecture(triple: str) -> llvm.Target:
    """LLVM's description of an architecture. Others than this machine's are loaded when one is asked for: LLVM looks
    through the passes of all that are, for each program, which is a tenth of what an empty one takes.
    """
    try:
        return llvm.Target.from_triple(triple)
    except RuntimeError:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(triple)


def _jit() -> llvm.LLJIT:
    if not _jits:
        machine_of(host_target())
        target = host_target()
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=2, jit=True
        )
        _jits.append(llvm.create_lljit_compiler(machine))
    return _jits[0]


def link_by_llvm(code: bytes, names: tuple[str, ...]) -> tuple[list[int], Any]:
    """What `load_object` does, by LLVM's linker, on machines for which we have none."""
    global _count
    with LOCK:
        _count += 1
        library = llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            library = library.export_symbol(name)
        tracker = library.add_current_process().link(_jit(), f"pb{_count}")
        return [tracker[name] for name in names], tracker


__all__ = ["LOCK", "link_by_llvm", "machine_of"]
