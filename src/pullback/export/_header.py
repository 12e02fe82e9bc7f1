"""The C header of an exported library: shapes, dtypes, ownership, error codes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pullback.export._cpu import Cpu
from pullback.export._program import Program
from pullback.export._signature import Parameter
from pullback.version import __version__

# Name -> what <library>_message says.
STATUS = (
    ("OK", "success"),
    ("ERROR_NULL", "a pointer is null"),
    ("ERROR_ALIGNMENT", "an array is not aligned as its elements are, or the workspace not to 64 bytes"),
    ("ERROR_OVERLAP", "a result overlaps an argument or another result"),
    ("ERROR_MEMORY", "there is no memory for the workspace"),
    ("ERROR_CPU", "this CPU lacks instructions that the library uses"),
)


def header(library: str, programs: Sequence[Program], cpu: Cpu, links: Sequence[str]) -> str:
    """The text of <library>.h."""
    upper = library.upper()
    complex_ = sorted({p.dtype for f in programs for p in (*f.inputs, *f.outputs) if p.dtype in ("c64", "c128")})
    parts = [_preamble(library, programs, cpu, links), f"#ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>"]
    parts[-1] += "\n#ifndef __cplusplus\n#include <stdbool.h>\n#endif"
    if complex_:
        parts.append(_complex_types(library, complex_))
    parts.append('#ifdef __cplusplus\nextern "C" {\n#endif')
    parts.append(f'#define {upper}_API __attribute__((visibility("default")))')
    codes = [f"    {upper}_{name} = {k},  /* {text} */" for k, (name, text) in enumerate(STATUS)]
    parts.append("\n".join([f"enum {library}_status {{", *codes, "};"]))
    parts.append(
        f"/* What a status means; a constant string. */\n{upper}_API const char *{library}_message(int status);"
    )
    parts += [_declaration(upper, program) for program in programs]
    parts.append(f"#ifdef __cplusplus\n}}\n#endif\n\n#endif  /* {upper}_H */")
    return "\n\n".join(parts) + "\n"


def declared(program: Program, in_workspace: bool = False) -> str:
    """The declaration of a function, without its attributes."""
    params = [argument(p) for p in program.inputs] + [f"{p.c_type} *{p.name}" for p in program.outputs]
    params += ["void *workspace"] if in_workspace else []
    text = f"int {program.name}{'_in' if in_workspace else ''}({', '.join(params) or 'void'})"
    return "\n".join(textwrap.wrap(text, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def argument(p: Parameter) -> str:
    """An input as it stands in a declaration."""
    return f"{p.c_type} {p.name}" if p.by_value else f"const {p.c_type} *{p.name}"


def _preamble(library: str, programs: Sequence[Program], cpu: Cpu, links: Sequence[str]) -> str:
    features = f": x86-64 with {', '.join(cpu.features)}" if cpu.features else ""
    text = f"""
        {library}: functions compiled by pullback {__version__}. They run without Python.

        Arrays are contiguous and row-major (the last index runs fastest), aligned as C aligns their elements. All
        memory is the caller's: a function reads its arguments, writes every element of its results, and keeps no
        pointer. Results must not overlap arguments or each other. Scalar arguments go by value, complex ones by
        pointer. Arrays without elements may be null.

        Every function returns {library.upper()}_OK, or one of the errors below, and then has written nothing. Functions
        may be called from several threads at once, and each runs on the thread that calls it. A function that needs
        memory takes it from malloc and gives it back; NAME_in(..., workspace) uses the caller's memory instead:
        NAME_WORKSPACE bytes, aligned to 64, of which simultaneous calls need one each. Where the constant is 0, the
        workspace may be null.

        CPU: {cpu.name}{features}. On a lesser one the functions return {library.upper()}_ERROR_CPU.
        Links against: {", ".join(links)}.
        """
    lines: list[str] = []
    for paragraph in textwrap.dedent(text).strip().split("\n\n"):
        for sentence in paragraph.split("\n") if paragraph.startswith("CPU:") else [paragraph.replace("\n", " ")]:
            lines += textwrap.wrap(sentence, 100, break_long_words=False, break_on_hyphens=False)
        lines.append("")
    names = ", ".join(program.name for program in programs)
    lines += textwrap.wrap(f"Functions: {names}.", 100, break_long_words=False)
    return "/* " + "\n".join(f" * {line}".rstrip() for line in lines)[3:] + "\n */"


def _complex_types(library: str, dtypes: Sequence[str]) -> str:
    names = {"c64": ("complex64", "float"), "c128": ("complex128", "double")}
    cplusplus = "\n".join(f"typedef std::complex<{names[d][1]}> {library}_{names[d][0]};" for d in dtypes)
    c = "\n".join(f"typedef {names[d][1]} _Complex {library}_{names[d][0]};" for d in dtypes)
    return f"#ifdef __cplusplus\n#include <complex>\n{cplusplus}\n#else\n{c}\n#endif"


def _declaration(upper: str, program: Program) -> str:
    rows = [("argument", p) for p in program.inputs] + [("result", p) for p in program.outputs]
    width = max((len(p.name) for _, p in rows), default=0)
    lines = [f"/* {program.title}", " *"]
    for kind, p in rows:
        path = "" if p.path == p.name else f", {p.path}"
        note = "".join(f" ({text})" for text in (p.note, "not used" if p.name in program.unused else "") if text)
        lines.append(f" *   {kind:8}  {p.name:{width}}  {described(p)}{note}{path}".replace("*/", "* /"))
    lines.append(" */")
    lines.append(f"{upper}_API {declared(program)};")
    lines.append(f"#define {program.name.upper()}_WORKSPACE {program.workspace}")
    lines.append(f"{upper}_API {declared(program, True)};")
    return "\n".join(lines)


def described(p: Parameter) -> str:
    """Such as float[3][4]."""
    base = p.c_type if not p.c_type.startswith("uint16_t") or not p.note else p.note.rsplit(" ", 1)[-1]
    return base + "".join(f"[{n}]" for n in p.shape) + (", by value" if p.by_value else "")
