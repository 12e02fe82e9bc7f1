"""Random calls of public functions, made of the templates in catalog.py: their arguments, and what is around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from fuzz.catalog import ELEMENTWISE, TEMPLATES
from fuzz.worker import Argument, numpy_dtype

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
FLOATS, COMPLEX = ("float16", "bfloat16", "float32", "float32", "float64"), ("complex64", "complex128")
INTEGERS = SIGNED + UNSIGNED
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",), "int": INTEGERS, "intb": (*INTEGERS, "bool"), "float": FLOATS, "real": INTEGERS + FLOATS,
    "num": INTEGERS + FLOATS + COMPLEX, "any": ("bool", "int32", "float32", *INTEGERS, *FLOATS, *COMPLEX),
    "wfloat": ("float32", "float64"), "wide": ("float32", "float64", *COMPLEX),
}  # fmt: skip
WIDE = ("int64", "uint64", "float64", "complex128")  # where x64 is off there are none of these
DIFFERENTIABLE = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
FORMS = ("array",) * 10 + ("numpy",)


@dataclass(frozen=True)
class Call:
    """A program: its group of templates, its text, and the arguments it is called with."""

    group: str
    text: str
    arguments: tuple[Argument, ...]
    domains: tuple[str, ...]  # of each argument's values


def templates() -> list[tuple[str, str]]:
    """Every template with its group."""
    found, group = [], ""
    for line in TEMPLATES.strip().splitlines():
        if line.startswith("# "):
            group = line[2:]
        elif line:
            found.append((group, line))
    return found


ALL = templates()
# A line with more names in it stands for more functions.
WEIGHTS = np.array([1.0 + 0.5 * line.count("|") ** 0.8 for _, line in ALL])
WEIGHTS /= WEIGHTS.sum()


def make_call(rng: np.random.Generator, x64: bool) -> Call:
    """A random call."""
    group, line = ALL[int(rng.choice(len(ALL), p=WEIGHTS))]
    expression = expand(line, rng)
    arguments: list[Argument] = []
    names: list[str] = []
    kinds: dict[str, str] = {}
    domains: list[str] = []

    def argument(match: re.Match) -> str:
        kind, letter, shapes, domain = match.group(1), match.group(2), match.group(3), match.group(4)
        if kind.startswith("py"):
            made = python_scalar(rng, kind)
        else:
            dtype = kinds.get(letter or "") or pick_dtype(rng, kind, x64)
            if letter:
                kinds[letter] = dtype
            options = (shapes or "").replace("E", ELEMENTWISE).split("|")
            text = options[int(rng.integers(len(options)))]
            shape = tuple(int(n) for n in text.split(",") if n)
            made = array_argument(rng, dtype, shape, domain or "")
        arguments.append(made)
        domains.append(kind if kind.startswith("py") else domain or "")
        names.append(f"x{len(names)}")
        return names[-1]

    body = re.sub(r"\{([a-z]+)(?:@([A-Z]))?(?::([0-9,|E]*)(?:;([a-z_]+)(?:\|[0-9,]+)?)?)?\}", argument, expression)
    body = around(rng, body, names, arguments) if group not in ("control", "random") else f"return {body}"
    text = f"def program({', '.join(names)}):\n    {body}\n"
    return Call(group, text, tuple(arguments), tuple(domains))


def expand(line: str, rng: np.random.Generator) -> str:
    """A template with its choices made, from the innermost."""
    pattern = re.compile(r"<([^<>]*)>")
    line = line.replace(">=", "\0ge").replace("x > 0", "x \0gt 0").replace("->", "\0to")
    while match := pattern.search(line):
        options = split_choices(match.group(1))
        line = line[: match.start()] + options[int(rng.integers(len(options)))] + line[match.end() :]
    return line.replace("\0ge", ">=").replace("\0gt", ">").replace("\0to", "->")


def split_choices(text: str) -> list[str]:
    """The alternatives; bars inside of braces belong to shapes."""
    parts, depth, current = [], 0, ""
    for c in text:
        depth += {"{": 1, "}": -1}.get(c, 0)
        if c == "|" and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += c
    return [*parts, current]


def pick_dtype(rng: np.random.Generator, kind: str, x64: bool) -> str:
    options = [d for d in KINDS[kind] if x64 or d not in WIDE]
    return options[int(rng.integers(len(options)))]


def python_scalar(rng: np.random.Generator, kind: str) -> Argument:
    """A Python bool, int, float or complex, which is weakly typed."""
    integer = int(rng.choice([0, 1, 2, 3, -1, -2, 5, 100]))
    options: list[Callable[[], object]] = [lambda: integer]
    if kind == "py":
        options += [lambda: float(rng.choice([0.0, 1.0, 0.5, -1.5, 2.0, 3.7, 1e-3, np.inf, np.nan]))] * 2
        options += [lambda: bool(rng.integers(2)), lambda: complex(float(integer), 0.5)]
    value = np.asarray(options[int(rng.integers(len(options)))]())
    return Argument("python", value.dtype.name, (), value.tobytes())


def array_argument(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], domain: str) -> Argument:
    value = values(rng, np.dtype(numpy_dtype(dtype)), shape, domain)
    return Argument(FORMS[int(rng.integers(len(FORMS)))], dtype, shape, np.ascontiguousarray(value).tobytes())


def values(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], domain: str) -> np.ndarray:
    """Elements of a dtype: of a domain, or ordinary ones, small whole ones, any magnitude, or with special values."""
    with np.errstate(all="ignore"):
        return elements(rng, dtype, shape, domain)


def elements(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], domain: str) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return (values(rng, part, shape, domain) + 1j * values(rng, part, shape, domain).astype(dtype)).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low = 0 if dtype.kind == "u" else -4
        if domain == "tiny":
            return rng.integers(0, 4, shape).astype(dtype)
        if domain or rng.random() < 0.7:
            found = rng.integers(low, 6, shape)
            return (np.sort(found) if domain == "sorted" else np.abs(found) if domain == "pos" else found).astype(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    style = rng.random()
    if domain == "unit":
        found = rng.uniform(-1, 1, shape)
    elif domain == "pos":
        found = np.exp(rng.normal(0, 1.5, shape))
    elif domain == "sorted":
        found = np.sort(rng.uniform(-1, 1, shape))
    elif domain == "big_diagonal":
        found = rng.uniform(-1, 1, shape) + 3 * np.eye(*shape)
    elif domain in ("small", "tiny") or style < 0.15:
        found = rng.integers(-4, 5, shape).astype(np.float64)
    elif domain != "specials" and style < 0.65:
        found = rng.normal(0, 2, shape)
    elif domain != "specials" and style < 0.85:
        span = {"float16": 4, "float32": 36, "bfloat16": 36}.get(dtype.name, 300)
        found = rng.normal(0, 1, shape) * 10.0 ** rng.uniform(-span, span, shape)
    else:
        found = np.where(rng.random(shape) < 0.5, rng.normal(0, 2, shape), rng.choice(SPECIALS, shape))
    return np.asarray(found).astype(dtype)


SPECIALS = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, 1e4, -1e4, 1e-3])
DERIVATIVES = (
    "return jax.jvp(lambda {p}: f({a}), ({p},), (jnp.cos({p}).astype({p}.dtype),))",
    "out, back = jax.vjp(lambda {p}: f({a}), {p})\n    return back(jax.tree_util.tree_map(jnp.ones_like, out))",
    "return jax.grad(lambda {p}: jnp.sum(jnp.real(f({a}))))({p})",
    "return jax.jit(lambda {p}: f({a}))({p})",
    "return jax.jacfwd(lambda {p}: f({a}))({p})", "return jax.jacrev(lambda {p}: f({a}))({p})",
    "return jax.checkpoint(lambda {p}: f({a}))({p})", "return jax.eval_shape(lambda {p}: f({a}), {p})",
    "return jax.vmap(lambda {p}: f({a}))(jnp.stack([{p}, {p}]))",
    "return jax.vmap(lambda {p}: f({a}), in_axes=-1, out_axes=-1)(jnp.stack([{p}, {p}, {p}], -1))",
    "return jax.vmap(jax.grad(lambda {p}: jnp.sum(jnp.real(f({a})))))(jnp.stack([{p}, {p}]))",
    "return jax.hessian(lambda {p}: jnp.sum(jnp.real(f({a}))))({p})",
    "return jax.linearize(lambda {p}: f({a}), {p})[1](jnp.ones_like({p}))",
    "return jax.vmap(jax.vmap(lambda {p}: f({a})))(jnp.stack([jnp.stack([{p}, {p}])]))",
)  # fmt: skip
NOT_DERIVATIVES = tuple(d for d in DERIVATIVES if "vmap(lambda" in d or "jit" in d or "checkpoint" in d or "shape" in d)
BEFORE = (
    "{p} = {p} * 2",
    "{p} = {p} + 1.5",
    "{p} = -{p}",
    "{p} = {p}.T",
    "{p} = jnp.asarray({p})[..., ::-1]",
    "{p} = {p} / 3",
)
AFTER = (
    "r.sum()",
    "r * 2",
    "r.astype(float)",
    "r.ravel()[:3]",
    "-r",
    "r + r",
    "jnp.where(r == r, r, 0)",
    "r.mean()",
    "r.T",
)


def around(rng: np.random.Generator, body: str, names: list[str], arguments: list[Argument]) -> str:
    """Statements that compute an expression: most often it alone, else a transformation of it, or steps around it."""
    style = rng.random()
    arrays = [k for k, a in enumerate(arguments) if a.form != "python"]
    if style < 0.6 or not arrays:
        return f"return {body}"
    p = names[arrays[int(rng.integers(len(arrays)))]]
    function = f"def f({', '.join(names)}):\n        return {body}\n    "
    if style < 0.85:
        dtype = arguments[names.index(p)].dtype
        lines = DERIVATIVES if dtype in DIFFERENTIABLE or rng.random() < 0.05 else NOT_DERIVATIVES
        line = lines[int(rng.integers(len(lines)))]
        return function + line.format(p=p, a=", ".join(names))
    if style < 0.93:
        return f"{p} = jnp.asarray({p})\n    {BEFORE[int(rng.integers(len(BEFORE)))].format(p=p)}\n    return {body}"
    return f"r = {body}\n    return {AFTER[int(rng.integers(len(AFTER)))]}"


def with_other_values(call: Call, rng: np.random.Generator) -> Call:
    """The same program with other arguments of the same types."""
    arguments = tuple(
        a if a.form == "python" else array_argument(rng, a.dtype, a.shape, d)._replace(form=a.form)
        for a, d in zip(call.arguments, call.domains)
    )
    return replace(call, arguments=arguments)


def with_values(call: Call, k: int, value: np.ndarray) -> Call:
    """The same call with other elements in one argument."""
    a = call.arguments[k]
    new = a._replace(data=np.ascontiguousarray(value.astype(numpy_dtype(a.dtype))).tobytes())
    return replace(call, arguments=(*call.arguments[:k], new, *call.arguments[k + 1 :]))


_ = ml_dtypes  # NumPy knows bfloat16 by this import
