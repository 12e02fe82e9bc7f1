"""The C between the header's functions and the compiled code: checks, workspace, tables of what the code reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pullback.export._blas import Blas
from pullback.export._cpu import Cpu
from pullback.export._header import STATUS, declared
from pullback.export._program import Program, is_fortran
from pullback.loops.emit.symbols import INTERRUPT, PARALLEL_FOR, STEP

_CALL = """
struct buffer { size_t bytes, alignment; };
struct program {
    int (*run)(void **, void **, void *);
    size_t workspace;
    int inputs, outputs;
    const struct buffer *buffers;  /* inputs, then outputs */
};

/* Results below the least normal number are 0 in the library, as in pullback; the caller's mode comes back. */
#if defined(__x86_64__)
static unsigned flush(void) {
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8000);
    return before;
}
static void restore(unsigned mode) { __builtin_ia32_ldmxcsr(mode); }
#else
static unsigned flush(void) { return 0; }
static void restore(unsigned mode) { (void)mode; }
#endif

/* Whether the ranges have a byte in common. */
static int overlap(const void *p, size_t n, const void *q, size_t m) {
    uintptr_t a = (uintptr_t)p, b = (uintptr_t)q;
    return n && m && a < b + m && b < a + n;
}

/* workspace: memory for it, or null if it is to be allocated (allowed only if `own`). */
static int pb_call(const struct program *p, void **arrays, void *workspace, int own) {
    int n = p->inputs + p->outputs, status;
    void *allocated = NULL;
    if (!cpu_suffices()) return LIBRARY_ERROR_CPU;
    for (int k = 0; k < n; ++k) {
        if (!p->buffers[k].bytes) continue;
        if (!arrays[k]) return LIBRARY_ERROR_NULL;
        if ((uintptr_t)arrays[k] % p->buffers[k].alignment) return LIBRARY_ERROR_ALIGNMENT;
    }
    for (int k = p->inputs; k < n; ++k)
        for (int j = 0; j < k; ++j)
            if (overlap(arrays[j], p->buffers[j].bytes, arrays[k], p->buffers[k].bytes)) return LIBRARY_ERROR_OVERLAP;
    if (p->workspace) {
        if (!workspace) {
            if (!own) return LIBRARY_ERROR_NULL;
            workspace = allocated = aligned_alloc(64, (p->workspace + 63) / 64 * 64);
            if (!allocated) return LIBRARY_ERROR_MEMORY;
        } else if ((uintptr_t)workspace % 64) {
            return LIBRARY_ERROR_ALIGNMENT;
        }
    }
    unsigned mode = flush();
    status = p->run(arrays, arrays + p->inputs, workspace);
    restore(mode);
    free(allocated);
    return status;
}
"""

_ANY_CPU = """
static int cpu_suffices(void) { return 1; }
"""

_CPU = """
#include <cpuid.h>

static int look_at_cpu(void) {{
    static const struct {{ unsigned leaf, word, bit; }} needed[] = {{{needed}}};
    const uint64_t saved = {saved};
    for (size_t k = 0; k < sizeof needed / sizeof *needed; ++k) {{
        unsigned words[4];
        if (!__get_cpuid_count(needed[k].leaf, 0, &words[0], &words[1], &words[2], &words[3])) return 0;
        if (!(words[needed[k].word] >> needed[k].bit & 1)) return 0;
    }}
    if (saved) {{
        uint32_t low, high;
        __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));  /* xgetbv */
        if ((low & saved) != saved) return 0;
    }}
    return 1;
}}

static int cpu_suffices(void) {{
    static int known;  /* 0: not looked yet, 1: yes, 2: no */
    int state = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!state) {{
        state = look_at_cpu() ? 1 : 2;
        __atomic_store_n(&known, state, __ATOMIC_RELAXED);
    }}
    return state == 1;
}}
"""

# What a single-threaded library without Python has in place of the runtime's functions.
_OWN = """
static int never(void) { return 0; }
static int never_counted(int64_t step, int64_t steps, int64_t loop) { (void)step; (void)steps; (void)loop; return 0; }
static void ignore(void) {}
static void serial_for(void (*body)(void *, int64_t, int64_t), void *context, int64_t count, int64_t grain) {
    (void)grain;
    if (count > 0) body(context, 0, count);
}
"""
_REPLACED = {
    PARALLEL_FOR: "(void *)serial_for",
    INTERRUPT: "(void *)never",
    STEP: "(void *)never_counted",
    "pb_blas_begin": "(void *)ignore",
    "pb_blas_end": "(void *)ignore",
}


def glue(
    library: str, programs: Sequence[Program], cpu: Cpu, blas: Blas, constants: Mapping[tuple[str, str], str]
) -> str:
    """The text of the C file; `constants` are the files that hold large constants, by (function, slot)."""
    upper = library.upper()
    parts = [f'#include "{library}.h"\n\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>', _OWN]
    parts += [_incbin(file) for file in dict.fromkeys(constants.values())]
    outside = sorted({_outside(name, blas) for f in programs for name in f.slots if _is_outside(name)})
    parts += [f"extern void {name}(void);" for name in outside]
    parts.append(_cpu_check(cpu))
    parts.append(_CALL.replace("LIBRARY", upper))
    parts += [_function(program, blas, constants) for program in programs]
    cases = "\n".join(f'    case {upper}_{name}: return "{text}";' for name, text in STATUS)
    parts.append(
        f"const char *{library}_message(int status) {{\n    switch (status) {{\n{cases}\n    }}\n"
        '    return "unknown status";\n}'
    )
    return "\n".join(parts) + "\n"


def blas_probe(routines: Sequence[str], blas: Blas) -> str:
    """A C file that links only if all routines are there."""
    names = [blas.spelling.format(name) for name in routines]
    return (
        "\n".join(f"extern void {n}(void);" for n in names)
        + f"\nvoid *all[] = {{{', '.join(f'(void *){n}' for n in names)}}};\n"
    )


def _cpu_check(cpu: Cpu) -> str:
    if not cpu.cpuid:
        return _ANY_CPU
    needed = ", ".join(f"{{{leaf:#x}u, {'abcd'.index(word)}, {bit}}}" for leaf, word, bit in cpu.cpuid)
    return _CPU.format(needed=needed, saved=cpu.saved_registers)


def _is_outside(name: str) -> bool:
    return ":" not in name and name not in _REPLACED


def _outside(name: str, blas: Blas) -> str:
    return blas.spelling.format(name) if is_fortran(name) else name


def _incbin(file: str) -> str:
    """The bytes of a file as a constant of the same name, without its suffix."""
    name = file.removesuffix(".bin")
    lines = (".section .rodata", ".balign 64", f".hidden {name}", f".globl {name}", f"{name}:", f'.incbin \\"{file}\\"')
    text = "".join(f'    "{line}\\n"\n' for line in (*lines, ".text"))
    return f'__asm__(\n{text});\nextern const char {name}[] __attribute__((visibility("hidden")));'


def _function(program: Program, blas: Blas, constants: Mapping[tuple[str, str], str]) -> str:
    entry, table = program.entry, program.table
    hidden = '__attribute__((visibility("hidden")))'
    lines = [f"extern int {entry}(void **, void **, void *) {hidden};"]
    if program.slots:
        values = []
        for name in program.slots:
            if name in _REPLACED:
                values.append(_REPLACED[name])
            elif ":" in name:
                values.append(f"(void *){constants[program.name, name].removesuffix('.bin')}")
            else:
                values.append(f"(void *){_outside(name, blas)}")
        lines += [f"extern void *const {table}[] {hidden};", f"void *const {table}[] = {{{', '.join(values)}}};"]
    parameters = (*program.inputs, *program.outputs)
    buffers = ", ".join(f"{{{p.nbytes}u, {p.alignment}}}" for p in parameters) or "{0, 1}"
    described = f"{entry}, {program.workspace}u, {len(program.inputs)}, {len(program.outputs)}, {entry}_buffers"
    lines.append(f"static const struct buffer {entry}_buffers[] = {{{buffers}}};")
    lines.append(f"static const struct program {entry}_program = {{{described}}};")
    addresses = ", ".join([f"(void *){'&' if p.by_value else ''}{p.name}" for p in parameters]) or "NULL"
    for in_workspace in (False, True):
        lines += [
            f"{declared(program, in_workspace)} {{",
            f"    void *pb_arrays[] = {{{addresses}}};",
            f"    return pb_call(&{entry}_program, pb_arrays, {'workspace, 0' if in_workspace else 'NULL, 1'});",
            "}",
        ]
    return "\n".join(lines)
