"""F6: sum(range(50,000)), in Python, arrays, C and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from examples import _common as common
from examples import sum_of_range

from benchmarks.documents.section import Section, Setting, run
from benchmarks.program import Program
from benchmarks.report import readable
from benchmarks.timing import Figures

N = sum_of_range.N


def torch_total(torch: Any) -> Any:
    """The sum in PyTorch, and the same through its JIT."""

    def total(n: int):
        return torch.arange(n).sum()

    return total


def torch_scripted(torch: Any) -> Any:
    """The same through PyTorch's JIT."""
    return torch.jit.script(torch_total(torch))


def programs() -> list[Program]:
    """Levels; what has no JAX in it is timed with the first of them."""

    def of(level: str, **others: Any) -> Program:
        return Program(
            level,
            inputs=lambda rng: (),
            jax=lambda jax: partial(sum_of_range.levels(jax)[level], N),
            jit=False,
            tolerance=0,
            **others,
        )

    return [
        of("eager", torch=lambda torch: partial(torch_total(torch), N)),
        of("jitted", torch=lambda torch: partial(torch_scripted(torch), N)),
        of("closed form"),
        of("Python"),
    ]


def measure(setting: Setting) -> Iterator[Figures]:
    """pullback, JAX, PyTorch, and a C compiler if there is one."""
    yield from run("F6", programs(), ("pullback", "jax", "torch"), setting)
    if sum_of_range.compiler():
        for flag in ("-O0", "-O2"):
            value, seconds = sum_of_range.by_c(N, flag)
            yield Figures("F6", f"C {flag}", seconds={"C": seconds}, values={"C": float(value)})


def render(figures: Sequence[Figures], folder: Path) -> list[str]:
    """One list of all ways."""
    found = {f.name: f.seconds for f in figures}
    plain = {
        "Python": found.get("Python", {}).get("pullback"),
        "closed form in Python": found.get("closed form", {}).get("pullback"),
    }
    ways: dict[str, float | None] = {
        **plain,
        **{name: seconds["C"] for name, seconds in found.items() if "C" in seconds},
        "PyTorch": found.get("eager", {}).get("torch"),
        "PyTorch, JIT (torch.jit.script)": found.get("jitted", {}).get("torch"),
    }
    for side, title in (("jax", "JAX"), ("pullback", "pullback")):
        ways |= {f"{title}, {level}": found.get(level, {}).get(side) for level in ("eager", "jitted")}
    no_compiler = (
        [] if any(name.startswith("C ") for name in found) else ["No C compiler (clang or cc) was found here."]
    )
    return [
        f"**JAX today.** Jitted, the sum takes {readable(ways['JAX, jitted'])}: it is computed at compile time.",
        f"**pullback.** Jitted, it takes {readable(ways['pullback, jitted'])}, the time of a call; eagerly "
        f"{readable(ways['pullback, eager'])} (JAX {readable(ways['JAX, eager'])}).",
        common.table([f"sum of 0, ..., {N - 1:,}", "time"], list(map(list, ways.items()))),
        *no_compiler,
    ]


SECTION = Section(
    "F6",
    "sum(range(50,000))",
    "sums a range in Python, with JAX eager and jitted, by the closed form n (n - 1) / 2, in C with clang, and "
    "with PyTorch and its JIT: a clever compiler finds the closed form. "
    "[examples/sum_of_range.py](../examples/sum_of_range.py) shows the compiled program.",
    measure,
    render,
)
