"""Jaxprs as text, in JAX's format.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }

A jaxpr becomes a document of texts, places where a line may break, and groups. A group is printed on one line if it
fits, else all its own breaks are newlines. Names go on through nested jaxprs; a jitted function's arguments and results
have the names that they have outside; one that is called several times is printed once, in front: `let f = { lambda ...
} in`.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from pullback.core.atoms import DropVar, Literal, Program, Var, jaxprs_in_params
from pullback.sharding._shardings import UNSPECIFIED
from pullback.util.record import NamedTuple, record

WIDTH = 80
LONG = 10  # jaxprs with more equations are printed in front

# Parameters that are not shown: always (None), or where they have this value.
_HIDDEN: dict[str, dict[str, Any]] = {
    "dot_general": {"precision": (None,), "preferred_element_type": (None,), "out_sharding": (None,)},
    "broadcast_in_dim": {"shape": None, "sharding": None, "broadcast_dimensions": ((),)},
    "convert_element_type": {"sharding": (None,)},
    "jit": {
        "inline": (False,),
        "keep_unused": (False,),
        "compiler_options_kvs": ((),),
        **dict.fromkeys(("donated_invars", "in_layouts", "out_layouts", "in_shardings", "out_shardings", "ctx_mesh")),
    },
    "all_to_all": {"axis_size": None},
    "custom_jvp_call": {"num_consts": (0,)},
    "custom_vjp_call": {"num_consts": (0,)},
}
# Parameters that JAX shows and that have only this value here.
_SHOWN = {
    "reduce_sum": {"out_sharding": None},
    "iota": {"sharding": None},
    "reshape": {"sharding": None},
    "conv_general_dilated": {"out_sharding": None},
}


class _Break(NamedTuple):
    """A place where a line may end; `flat` is printed where it does not."""

    flat: str


class _Group(NamedTuple):
    """Parts that are printed on one line if they fit."""

    parts: tuple


class _Nest(NamedTuple):
    """Parts whose new lines are indented by `by` more."""

    by: int
    parts: tuple


class _Note(NamedTuple):
    """A remark on the line, printed after its end."""

    text: str


class _Colored(NamedTuple):
    """A text in a style, where colors are asked for."""

    style: str
    text: str


# The codes of a terminal that begin and end a style; what is in none has the empty one.
_STYLES = {"": ("", ""), "keyword": ("\x1b[34;1m", "\x1b[39;22m"), "type": ("\x1b[35m", "\x1b[39m")}


@record
class Style:
    """What of a jaxpr is printed, and how."""

    source_info: bool = False
    name_stack: bool = False
    print_shapes: bool = True
    print_effects: bool = False
    custom_pp_eqn_rules: bool = True
    width: int = WIDTH
    use_color: bool = False


def _width(doc) -> int:
    """The document's width on one line."""
    if isinstance(doc, str):
        return len(doc)
    if isinstance(doc, _Break):
        return len(doc.flat)
    if isinstance(doc, _Note):
        return 0
    if isinstance(doc, _Colored):
        return len(doc.text)
    return sum(map(_width, doc.parts))


class _Page:
    """Lines that grow, with their widths without codes of colors, and the remarks behind them."""

    def __init__(self, use_color: bool):
        self.use_color = use_color
        self.lines: list[tuple[str, int, list[str]]] = [("", 0, [])]
        self.style = ""

    @property
    def column(self) -> int:
        return self.lines[-1][1]

    def write(self, text: str, style: str = "") -> None:
        line, width, notes = self.lines[-1]
        if text and self.use_color and style != self.style:
            line += _STYLES[self.style][1] + _STYLES[style][0]
            self.style = style
        self.lines[-1] = (line + text, width + len(text), notes)

    def newline(self, indent: int) -> None:
        self.lines.append((" " * indent, indent, []))

    def text(self) -> str:
        if not any(notes for _, _, notes in self.lines):
            return "\n".join(line for line, _, _ in self.lines)
        column = max(width for _, width, _ in self.lines)
        out = []
        for line, width, notes in self.lines:
            out.append(f"{line}{' ' * (column - width)} # {notes[0]}" if notes else line)
            out.extend(f"{'':{column}} # {more}" for more in notes[1:])
        return "\n".join(out)


def _render(doc, style: Style = Style()) -> str:
    page = _Page(style.use_color)
    stack: list[tuple[int, bool, Any]] = [(0, False, doc)]
    while stack:
        indent, flat, item = stack.pop()
        if isinstance(item, str):
            page.write(item)
        elif isinstance(item, _Colored):
            page.write(item.text, item.style)
        elif isinstance(item, _Break):
            if flat:
                page.write(item.flat)
            else:
                page.newline(indent)
        elif isinstance(item, _Note):
            page.lines[-1][2].append(item.text)
        else:
            if isinstance(item, _Group):
                flat = flat or page.column + _width(item) <= style.width
            inner = indent + item.by if isinstance(item, _Nest) else indent
            stack.extend((inner, flat, part) for part in reversed(item.parts))
    return page.text()


_OF_REFERENCES = ("get", "swap", "addupdate")


class _Printer:
    """Names of variables, and the jaxprs that are printed in front."""

    def __init__(self, style: Style = Style()):
        self.names: dict[Var, str] = {}
        self.count = 0
        self.unused: set[Var] = set()
        self.shared: dict[int, str] = {}
        self.style = style

    # names

    def name(self, var: Var) -> str:
        """The variable's name: a, b, ..., z, ba, bb, ... in order of appearance, _ for one that nothing reads."""
        if isinstance(var, DropVar) or (var in self.unused and var not in self.names):
            return "_"
        found = self.names.get(var)
        if found is None:
            found = self.next_name()
            while found in self.shared.values():  # what is printed in front has it
                found = self.next_name()
            self.names[var] = found
        return found

    def next_name(self) -> str:
        n, found = self.count, ""
        self.count += 1
        while True:
            n, digit = divmod(n, 26)
            found = chr(97 + digit) + found
            if n == 0:
                return found

    def atom(self, atom) -> str:
        return str(atom) if isinstance(atom, Literal) else self.name(atom)

    def binders(self, variables) -> list:
        """The variables with their types; each blank may be a newline."""
        parts: list[Any] = []
        for var in variables:
            if parts:
                parts.append(_Group((_Break(" "),)))
            parts.append(self.name(var))
            if self.style.print_shapes:
                parts.append(_Colored("type", f":{var.aval.short()}"))
        return parts

    # documents

    def program(self, jaxpr: Any):
        """The jaxpr, after those that are printed in front."""
        parts: list[Any] = []
        in_front = _printed_in_front(jaxpr)
        self.shared = {id(inner): name for inner, name in in_front}
        for inner, name in in_front:
            parts += [f"let {name} = ", self.jaxpr(inner), " in", _Break(" ")]
        self.find_unused(jaxpr)
        return _Nest(0, (*parts, self.jaxpr(jaxpr)))

    def find_unused(self, jaxpr: Any) -> None:
        """Note which results nothing reads. Within an equation they have names, as in JAX."""
        used = {a for eqn in jaxpr.eqns for a in eqn.invars if type(a) is not Literal}
        used.update(a for a in jaxpr.outvars if type(a) is not Literal)
        self.unused.update(v for eqn in jaxpr.eqns for v in eqn.outvars if v not in used)

    def jaxpr(self, jaxpr: Any):
        variables = (*self.binders(jaxpr.constvars), "; ", *self.binders(jaxpr.invars))
        head = ["{ ", _Colored("keyword", "lambda "), *variables, ". ", _Colored("keyword", "let")]
        body: list[Any] = [_Break(" ")]
        for number, eqn in enumerate(jaxpr.eqns):
            if number:
                body.append(_Break("; "))
            body.append(self.eqn(eqn))
        outs: list[Any] = []
        for number, atom in enumerate(jaxpr.outvars):
            outs += [",", _Group((_Break(" "),)), self.atom(atom)] if number else [self.atom(atom)]
        end = ",)" if len(outs) == 1 else ")"
        if self.style.print_effects:
            end += f" : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }}"
        last = (_Break(" "), _Colored("keyword", "in "), "(", _Nest(2, tuple(outs)), f"{end} }}")
        return _Group((_Nest(4, (*head, *body)), _Nest(2, last)))

    def eqn(self, eqn: Any):
        if self.style.custom_pp_eqn_rules:
            if eqn.primitive.name in _OF_REFERENCES and "index" in eqn.params:
                return self.access(eqn)
            if eqn.primitive.name == "jit":
                self.carry_names(eqn)
        left = self.binders(eqn.outvars)
        params = self.params(eqn)
        if left:
            left.append(" = ")
        right: list[Any] = []
        for position, atom in enumerate(eqn.invars):
            right += [_Group((_Break(" "),)) if position else " ", self.atom(atom)]
        if not eqn.invars:
            right.append(" ")
        operation = (eqn.primitive.name, params) if params else (eqn.primitive.name,)
        if eqn.primitive.name == "reshard" and self.style.custom_pp_eqn_rules:
            operation = ("reshard",)  # the result's type says how
        return _Nest(0, (*self.remarks(eqn), _Nest(2, tuple(left)), *operation, _Nest(2, tuple(right))))

    def access(self, eqn: Any):
        """A read or write of a reference: y <- r[i], r[i] <- y, or r[i] += y."""
        ref, *rest = eqn.invars
        values, arrays = (rest[:1], rest[1:]) if eqn.primitive.name != "get" else ([], rest)
        names = [str(a.val) if isinstance(a, Literal) else self.name(a) for a in arrays]
        part = f"{self.name(ref)}[{eqn.params['index'].text(names, ref.aval.ndim)}]"
        value = "".join(map(self.atom, values))
        if eqn.primitive.name == "addupdate":
            return _Nest(0, (*self.remarks(eqn), f"{part} += {value}"))
        (out,) = eqn.outvars
        if self.name(out) == "_" and values:
            return _Nest(0, (*self.remarks(eqn), f"{part} <- {value}"))
        left = self.binders(eqn.outvars)
        right = f", {part} <- {part}, {value}" if values else f" <- {part}"
        return _Nest(0, (*self.remarks(eqn), _Nest(2, tuple(left)), right))

    def remarks(self, eqn):
        parts = []
        if self.style.source_info and eqn.source is not None:
            parts.append(_Note(eqn.source.in_full))
        if self.style.name_stack:
            parts.append(_Note(f"[{eqn.source.name_stack if eqn.source is not None else ''}]"))
        return tuple(parts)

    def carry_names(self, eqn) -> None:
        """The names of a jitted function's arguments and results inside are those outside."""
        inner = eqn.params["jaxpr"].jaxpr
        if id(inner) in self.shared:
            return
        taken = set()
        for var, atom in zip(inner.invars, eqn.invars):
            if type(atom) is not Literal and var not in self.names and self.name(atom) not in taken:
                self.names[var] = self.name(atom)
                taken.add(self.name(atom))
        for inside, outside in zip(inner.outvars, eqn.outvars):
            if type(inside) is not Literal and inside not in self.names:
                self.names[inside] = self.name(outside)

    def params(self, eqn):
        """[k=v k=v], or a line for each."""
        name = eqn.primitive.name
        plain = not self.style.custom_pp_eqn_rules
        items = sorted((_SHOWN.get(name, {}) | eqn.params).items()) if plain else _shown_params(eqn)
        if not items:
            return None
        parts: list[Any] = [
            "[",
            _Nest(
                2,
                tuple(
                    part
                    for number, (key, value) in enumerate(items)
                    for part in (_Break(" " if number else ""), f"{key}=", self.value(name, key, value))
                ),
            ),
            _Break(""),
            "]",
        ]
        return _Group(tuple(parts))

    def value(self, primitive: str, key: str, value: Any):
        if isinstance(value, Program):
            value = getattr(value, "jaxpr", value)
            return self.shared.get(id(value)) or self.jaxpr(value)
        if type(value) is tuple and value and all(isinstance(v, Program) for v in value):
            inner = tuple(
                part
                for number, v in enumerate(value)
                for part in (_Break(" " if number else ""), self.value(primitive, key, v))
            )
            return _Group(("(", _Nest(2, inner), _Break(""), ")"))
        if isinstance(value, frozenset):
            return f"frozenset({{{', '.join(sorted(map(repr, value)))}}})"
        if primitive == "dot_general" and key == "dimension_numbers" and self.style.custom_pp_eqn_rules:
            (left, right), (left_batch, right_batch) = value
            return str((([*left], [*right]), ([*left_batch], [*right_batch])))
        if isinstance(value, np.dtype):
            return value.name
        if callable(value) and hasattr(value, "__name__"):
            shown = primitive in ("custom_jvp_call", "custom_vjp_call") or type(value) is not types.FunctionType
            inner = value.__qualname__ if not shown and "<locals>" in value.__qualname__ else value.__name__
            return value.__name__ if shown else f"<function {inner} at 0xXXXXXXXXXXXX>"
        return str(value)


def _is_among(value: Any, known: tuple) -> bool:
    """Whether a parameter has one of some values; NumPy takes None for float64 where dtypes are compared."""
    return any(value is v or (type(value) is type(v) and value == v) for v in known)


def _shown_params(eqn: Any) -> list[tuple[str, Any]]:
    """Names and values of the parameters in the order in which they are shown: the name first, then by name."""
    name = eqn.primitive.name
    params = dict(eqn.params)
    hidden = _HIDDEN.get(name, {})
    shown = {k: v for k, v in params.items() if not (k in hidden and (hidden[k] is None or _is_among(v, hidden[k])))}
    if name == "jit" and any(params.get("donated_invars") or ()):
        shown["donated_invars"] = params["donated_invars"]
    if name == "jit" and "in_shardings" in params:
        said = [k for k in ("in_shardings", "out_shardings") if any(s is not UNSPECIFIED for s in params[k])]
        shown |= {k: params[k] for k in (*said, *["ctx_mesh"] * (not params["ctx_mesh"].empty))}
    if name in ("custom_jvp_call", "custom_vjp_call"):
        shown["name"] = params["call_jaxpr"].jaxpr.debug_info.func_name
        shown["symbolic_zeros"] = getattr(params.get("jvp") or params.get("fwd"), "symbolic_zeros", False)
    shown = _SHOWN.get(name, {}) | shown
    return sorted(shown.items(), key=lambda item: (item[0] != "name", item[0]))


def _printed_in_front(jaxpr: Any) -> list[tuple[Any, str]]:
    """The jaxprs anywhere inside that are long, or the body of several jit equations; with names that differ."""
    counts: dict[int, int] = {}
    order: list[tuple[Any, str]] = []

    def visit(inside: Any):
        for eqn in inside.eqns:
            name = str(eqn.params.get("name", "jaxpr")) if eqn.primitive.name == "jit" else "jaxpr"
            for inner in jaxprs_in_params(eqn.params):
                counts[id(inner)] = counts.get(id(inner), 0) + 1
                if counts[id(inner)] == 1:
                    order.append((inner, name))
                    visit(inner)

    visit(jaxpr)
    taken: dict[str, int] = {}
    named = []
    for inner, name in order:
        if counts[id(inner)] > 1 or len(inner.eqns) > LONG:
            name = "".join(c for c in name if c.isalnum() or c == "_")
            number = taken.get(name, 0)
            taken[name] = number + 1
            named.append((inner, f"{name}{number or ''}"))
    return named


def jaxpr_text(jaxpr: Any, **style: Any) -> str:
    """The whole jaxpr as text; the options are those of `Style`, TypeError for others."""
    chosen = Style(**style)
    return _render(_Printer(chosen).program(jaxpr), chosen)


class _Marking(_Printer):
    """Puts a mark and the place in the user's code behind each equation."""

    def remarks(self, eqn):
        return () if eqn.source is None else (_Note(_MARK + eqn.source.in_full),)


_MARK = "\uf8ff"  # of the private use area: in no name


def lines_with_places(jaxpr: Any) -> list[tuple[str, str]]:
    """(line, place in the user's code, or nothing) for each line of a jaxpr's text."""
    found: list[tuple[str, str]] = []
    for line in _render(_Marking().program(jaxpr)).split("\n"):
        text, _, where = line.partition(_MARK)
        text, where = text.removesuffix("# ").rstrip(), where.strip()
        if text or not found:
            found.append((text, where))
        elif where not in found[-1][1].split("\n"):  # a line of several equations
            found[-1] = found[-1][0], found[-1][1] + "\n" + where
    return found


def eqn_text(eqn: Any) -> str:
    """One equation as text."""
    return _render(_Printer().eqn(eqn)).rstrip()
