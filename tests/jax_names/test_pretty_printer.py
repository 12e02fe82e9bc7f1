"""Documents that break their lines: the layouts that jax._src.pretty_printer gives, too."""

from pullback.jax_names.src import pretty_printer as pp


def call(name, *arguments):
    separated = pp.join(pp.concat([pp.text(","), pp.brk()]), arguments)
    inside = pp.nest(2, pp.concat([pp.brk(""), separated]))
    return pp.group(pp.concat([pp.text(f"{name}("), inside, pp.brk(""), pp.text(")")]))


def test_a_group_is_on_one_line_or_all_its_breaks_are_line_ends():
    doc = call("f", pp.text("a" * 30), pp.text("b" * 30))
    assert doc.format() == str(doc) == f"f({'a' * 30}, {'b' * 30})"
    assert doc.format(width=40) == f"f(\n  {'a' * 30},\n  {'b' * 30}\n)"


def test_groups_inside_fit_by_themselves_and_what_follows_counts():
    doc = call("f", call("g", pp.text("x"), pp.text("y")), pp.text("z" * 10)) + pp.text(";")
    assert doc.format(width=18) == "f(\n  g(x, y),\n  zzzzzzzzzz\n);"
    assert (call("f", pp.text("abc")) + pp.text(";")).format(width=6) == "f(\n  abc\n);"
    assert call("f", pp.text("abc")).format(width=6) == "f(abc)"


def test_breaks_outside_of_groups_are_line_ends():
    assert pp.concat([pp.text("a"), pp.brk(), pp.nest(3, pp.brk() + pp.text("b")), pp.nil()]).format() == "a\n\n   b"


def test_notes_colors_and_sources():
    doc = pp.concat([pp.text("a", "first"), pp.brk(), pp.text("bcd", "second"), pp.brk(), pp.text("e")])
    assert doc.format() == "a   # first\nbcd # second\ne"
    coloured = pp.keyword(pp.text("let"))
    assert coloured.format() == "let"
    assert coloured.format(use_color=True).endswith("let\033[39;49;22m")
    sources = []
    mapped = pp.concat([pp.text("ab"), pp.source_map(pp.text("cd"), "here"), pp.brk(), pp.text("e")])
    assert mapped.format(source_map=sources) == "abcd\ne" and sources == [[(2, 4, "here")], []]
