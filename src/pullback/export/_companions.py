"""What comes beside an exported library and its header: a CMake package, and an example that calls every function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.export._program import Program
from pullback.export._signature import Parameter
from pullback.loops.ir.types import NP_DTYPE, is_int

SHOWN = 6  # elements of a result that the example prints


def cmake_package(library: str, links: Sequence[str]) -> str:
    """The text of <library>Config.cmake."""
    return f"""# {library} for CMake. In your CMakeLists.txt:
#
#   find_package({library} CONFIG REQUIRED PATHS /this/folder NO_DEFAULT_PATH)
#   target_link_libraries(your_program PRIVATE {library}::{library})
#
# The library links against: {", ".join(links)}.
if(NOT TARGET {library}::{library})
  add_library({library}::{library} SHARED IMPORTED)
  set_target_properties({library}::{library} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/lib{library}.so"
    IMPORTED_SONAME "lib{library}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""


def cmake_example(library: str) -> str:
    """The text of CMakeLists.txt, which builds the example."""
    return f"""# Builds the example: cmake -S . -B build && cmake --build build && build/example
cmake_minimum_required(VERSION 3.10)
project({library}_example CXX)
set(CMAKE_CXX_STANDARD 11)
find_package({library} CONFIG REQUIRED PATHS "${{CMAKE_CURRENT_LIST_DIR}}" NO_DEFAULT_PATH)
add_executable(example example.cpp)
target_link_libraries(example PRIVATE {library}::{library})
"""


_EXAMPLE = """// Calls every function of {library} once, and prints the first elements of what it gives.
//
//   c++ -std=c++11 example.cpp -o example -I. -L. -l{library} '-Wl,-rpath,$ORIGIN'
#include "{library}.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>

namespace {{

template <class T> inline void show(T x) {{ std::printf(" %.17g", double(x)); }}
inline void show(float x) {{ std::printf(" %.9g", double(x)); }}
inline void show(int64_t x) {{ std::printf(" %lld", static_cast<long long>(x)); }}
inline void show(uint64_t x) {{ std::printf(" %llu", static_cast<unsigned long long>(x)); }}
{complex_}
template <class T> inline void show_values(const char *name, const T *x, std::size_t size) {{
    std::printf("%s:", name);
    for (std::size_t i = 0; i < size && i < {shown}; ++i) show(x[i]);
    std::printf(size > {shown} ? " ...\\n" : "\\n");
}}

}}  // namespace

int main() {{
{blocks}
    return 0;
}}
"""

_COMPLEX = """template <class T> inline void show(std::complex<T> x) {
    show(x.real());
    show(x.imag());
}
"""


def example(library: str, programs: Sequence[Program]) -> str:
    """The text of example.cpp."""
    parameters = [p for f in programs for p in (*f.inputs, *f.outputs)]
    complex_ = _COMPLEX if any(p.dtype in ("c64", "c128") for p in parameters) else ""
    blocks = "\n".join(_block(library, program) for program in programs)
    return _EXAMPLE.format(library=library, complex_=complex_, shown=SHOWN, blocks=blocks)


def example_value(p: Parameter) -> np.ndarray:
    """The values that the example gives to an argument: those given if they are few, else a pattern."""
    dtype = NP_DTYPE[p.dtype]
    if p.example is not None:
        return np.asarray(p.example, dtype).reshape(p.shape)
    i = np.arange(p.size)
    if p.dtype == "bool":
        values = i % 2 == 1
    elif is_int(p.dtype):
        values = i % 4
    else:
        values = 0.25 + i % 7 * 0.125
        if p.dtype in ("c64", "c128"):
            values = values + 1j * (0.25 + (i + 1) % 7 * 0.125)
    return values.astype(dtype).reshape(p.shape)


def _block(library: str, program: Program) -> str:
    lines = ["    {"]
    for p in program.inputs:
        lines += [f"        {line}" for line in _filled(p)]
    lines += [
        f"        std::unique_ptr<{p.c_type}[]> {p.name}(new {p.c_type}[{max(p.size, 1)}]);" for p in program.outputs
    ]
    given = [p.name if p.by_value else f"{p.name}.get()" for p in (*program.inputs, *program.outputs)]
    lines += [
        f"        int call_status = ::{program.name}({', '.join(given)});",
        f"        if (call_status != {library.upper()}_OK) {{",
        f'            std::fprintf(stderr, "{program.name}: %s\\n", {library}_message(call_status));',
        "            return 1;",
        "        }",
    ]
    for p in program.outputs:
        lines.append(f'        show_values("{program.name} {p.name}", {p.name}.get(), {p.size});')
    return "\n".join([*lines, "    }"])


def _filled(p: Parameter) -> list[str]:
    known = p.example is not None
    if p.by_value:
        return [f"{p.c_type} {p.name} = {_literal(p, example_value(p)[()])};"]
    if known and p.size:
        values = ", ".join(_literal(p, value) for value in example_value(p).reshape(-1))
        return [f"std::unique_ptr<{p.c_type}[]> {p.name}(new {p.c_type}[{p.size}]{{{values}}});"]
    lines = [f"std::unique_ptr<{p.c_type}[]> {p.name}(new {p.c_type}[{max(p.size, 1)}]);"]
    if p.size:
        if p.dtype in ("f16", "bf16"):
            bits = ", ".join(_literal(p, x) for x in (0.25 + np.arange(7) * 0.125).astype(NP_DTYPE[p.dtype]))
            lines.append(f"static const uint16_t {p.name}_bits[] = {{{bits}}};")
        lines.append(f"for (std::size_t element = 0; element < {p.size}; ++element) {p.name}[element] = {_pattern(p)};")
    return lines


def _pattern(p: Parameter) -> str:
    if p.dtype == "bool":
        return "element % 2 == 1"
    if is_int(p.dtype):
        return f"{p.c_type}(element % 4)"
    if p.dtype in ("f16", "bf16"):
        return f"{p.name}_bits[element % 7]"
    real = "float" if p.dtype in ("f32", "c64") else "double"
    value = f"{real}(0.25 + element % 7 * 0.125)"
    if p.dtype in ("f32", "f64"):
        return value
    return f"{p.c_type}({value}, {real}(0.25 + (element + 1) % 7 * 0.125))"


def _literal(p: Parameter, value: Any) -> str:
    if p.dtype == "bool":
        return "true" if value else "false"
    if is_int(p.dtype):
        if p.dtype == "i64":
            return "INT64_MIN" if int(value) == -(2**63) else f"INT64_C({int(value)})"
        return f"UINT64_C({int(value)})" if p.dtype == "u64" else f"{p.c_type}({int(value)})"
    if p.dtype in ("f16", "bf16"):
        return f"{int(value.view(np.uint16)):#06x}"
    if p.dtype in ("c64", "c128"):
        return f"{p.c_type}({_float(p, value.real)}, {_float(p, value.imag)})"
    return _float(p, value)


def _float(p: Parameter, value: Any) -> str:
    number = float(value)
    if not np.isfinite(number):
        return "double(NAN)" if np.isnan(number) else f"{'-' if number < 0 else ''}double(INFINITY)"
    single = p.dtype in ("f32", "c64")
    text = np.format_float_scientific(np.float32(number) if single else number, unique=True, trim="0")
    return f"{text}f" if single else text
