"""`pullback.report`: kernels are all measured, belong to the user's lines, and the page shows them in a browser."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.loops.emit import load
from pullback.loops.emit.symbols import INTERRUPT, STEP
from pullback.util.errors import ArgumentError


def step(w, x, y):
    h = jnp.tanh(x @ w)
    return w - 0.1 * pb.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w) + h.mean()


def _arrays():
    return jnp.ones((32, 48)), jnp.ones((500, 32)), jnp.ones((500, 48))


@functools.cache
def _step():
    return pb.report(step, *_arrays(), path=None)


def test_kernels():
    facts = _step().facts
    assert facts["ns"] > 0 and facts["kernels"]
    assert np.isclose(sum(k["share"] for k in facts["kernels"]), 1)
    assert all(k["runs"] == 1 for k in facts["kernels"])
    assert all(k["ns"] >= 0 and k["least_bytes"] >= 0 and k["threads"] >= 1 for k in facts["kernels"])
    here = {line["text"].strip() for k in facts["kernels"] for line in k["lines"] if line["file"] == __file__}
    assert any("jnp.tanh(x @ w)" in text for text in here), here
    assert any(k["stored"] for k in facts["kernels"])
    assert {"schedule", "algebra"} <= set(facts["passes"]) and "fusion and lowering" in facts["stages"]
    assert facts["argument_bytes"] == 4 * (32 * 48 + 500 * 32 + 500 * 48)
    assert facts["result_bytes"] == 4 * 32 * 48
    numbers = {n for n, _ in facts["jaxpr"] if n is not None}
    assert all(set(k["equations"]) <= numbers for k in facts["kernels"])


def test_page_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = pb.report(pb.jit(lambda x: jnp.sin(x) * 2), jnp.ones(1000))
    text = (tmp_path / "report.html").read_text()
    assert found.path == "report.html" and text.startswith("<!doctype html>")
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)|@import|url\(", text)  # works offline
    assert "report.html" in repr(found) and found._repr_html_().startswith("<iframe")


def test_nests_of_loops_are_measured_in_every_iteration():
    def loop(x):
        return pb.lax.scan(lambda c, t: (jnp.tanh(c @ x) + t, c.sum()), x, jnp.arange(7.0))

    facts = pb.report(loop, jnp.ones((64, 64)), path=None).facts
    assert 7 in {k["runs"] for k in facts["kernels"]}


def test_kernels_that_read_the_step_of_a_loop_have_instructions():
    def walk(c, u):
        c = 0.9 * c + jnp.sin(u)
        return c, c.sum()

    def down(x):
        return pb.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * jnp.sin(s[0] + s[1])), (0, x))

    scanned = pb.report(lambda c, us: pb.lax.scan(walk, c, us), jnp.ones(64), jnp.ones((100, 64)), path=None)
    for found in (scanned, pb.report(down, jnp.ones(1000), path=None)):
        assert not [k["asm"] for k in found.facts["kernels"] if "not shown" in k["asm"]]


def test_branches_that_are_not_taken():
    facts = pb.report(lambda x: pb.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), jnp.ones(5000), path=None).facts
    runs = {name: k["runs"] for k in facts["kernels"] for name in k["fused"] if name in ("sin", "cos")}
    assert runs == {"sin": 1, "cos": 0}


def test_measured_loops_ask_the_runtime_whether_to_go_on(monkeypatch):
    """Its stand-in in Python would be most of what is measured."""
    asked = []
    for name in (INTERRUPT, STEP):
        kind = type(load._stand_ins[name])
        monkeypatch.setitem(load._stand_ins, name, kind(lambda *step: asked.append(step) or 0))
    sorting = lambda x: pb.lax.scan(lambda c, _: (jnp.sort(c)[::-1] * 0.5, None), x, None, length=40)[0]
    pb.report(sorting, jnp.ones(4000), path=None)
    assert not asked


def test_products_inside_of_kernels_that_run_in_several_places():
    def loss(p, x):
        def step(x, _):
            for _ in range(3):
                x = x + jnp.tanh(x @ p[0]) @ p[1]
            return x, None

        return pb.lax.scan(step, x, None, length=3)[0].sum()

    p, x = (jnp.ones((64, 128)), jnp.ones((128, 64))), jnp.ones((256, 64))
    products = [k for k in pb.report(pb.grad(loss), p, x, path=None).facts["kernels"] if "dot_general" in k["fused"]]
    assert all(k["ns"] > 0 for k in products) and len(products) > 3


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        (lambda x: x + 1, (1.0,)),
        (lambda x: x, (jnp.zeros((0, 3)),)),
        (lambda x: jnp.linalg.solve(x, jnp.sort(x, axis=0)), (np.eye(20) + np.arange(20),)),
        (lambda x: pb.pure_callback(np.sin, x, x), (jnp.ones(30),)),
        (lambda x: {"a": x["b"].astype(jnp.bfloat16), "k": x["k"]}, ({"b": jnp.ones(9), "k": jnp.arange(3)},)),
        (lambda x: jnp.fft.fft(x), (jnp.ones(64, jnp.complex64),)),
    ],
    ids=["scalar", "empty", "libraries", "callback", "trees", "complex"],
)
def test_programs_of_all_kinds(fun, args):
    found = pb.report(fun, *args, path=None)
    assert found.facts["ns"] > 0
    assert "{{" not in found.html


def test_runner_up():
    def rows(x):
        return pb.nn.softmax(x, axis=0) + x.mean(0)

    kernels = pb.report(rows, jnp.ones((600, 200)), path=None).facts["kernels"]
    assert any(k["runner_up"] and k["runner_up_ns"] is not None for k in kernels) or len(kernels) > 1


@functools.cache
def _centred():
    mesh = pb.make_mesh((4,), ("data",), axis_types=(pb.sharding.AxisType.Auto,))

    def centred(w, x):
        return x - x.mean(0) * w

    x = pb.device_put(jnp.ones((40, 3)), pb.NamedSharding(mesh, pb.P("data")))
    return pb.report(centred, jnp.ones(3), x, path=None), mesh


def test_collectives_over_a_mesh():
    facts = _centred()[0].facts
    (sum_,) = facts["collectives"]
    assert facts["devices"] == 4 and sum_["axes"] == ["data"] and sum_["bytes"] == 3 * 3 * 4
    lines = [line["text"].strip() for k in (sum_, *facts["kernels"]) for line in k["lines"]]
    assert set(lines) == {"return x - x.mean(0) * w"}
    assert any(k["name"] == "exchange: wait" and k["runs"] == 1 for k in facts["kernels"])
    assert facts["argument_bytes"] == 4 * (3 + 10 * 3)  # of one device


def test_arrays_that_are_whole_on_a_mesh():
    whole = pb.device_put(jnp.ones(4), pb.NamedSharding(_centred()[1], pb.P()))
    facts = pb.report(jnp.sin, whole, path=None).facts
    assert facts["devices"] == 1 and facts["collectives"] == [] and facts["kernels"]


def test_keys():
    facts = pb.report(lambda key: pb.random.normal(key, (20,)), pb.random.key(0), path=None).facts
    assert facts["kernels"]


def test_derivatives_belong_to_the_lines_that_are_differentiated():
    kernels = _step().facts["kernels"]
    products = [k for k in kernels if "dot_general" in k["fused"] and k["share"] > 0.1]
    assert products and all(k["of_limit"] for k in products)
    assert all("tanh(x @ w)" in line["text"] for k in products for line in k["lines"])


def test_static_arguments():
    power = pb.jit(lambda x, n, *, twice: x**n * (1 + twice), static_argnums=1, static_argnames="twice")
    assert pb.report(power, jnp.ones(9), 3, twice=True, path=None).facts["argument_bytes"] == 36


def test_mistakes(tmp_path):
    with pytest.raises(FileNotFoundError, match="in a folder that is not there"):
        pb.report(jnp.sin, 1.0, path=tmp_path / "none" / "page.html")
    with pytest.raises(ArgumentError, match="'fun' must be a function, got 3 of type int"):
        pb.report(3)
    with pytest.raises(ArgumentError, match="outside of jit"):
        pb.jit(lambda x: pb.report(jnp.sin, x))(1.0)


def test_text_of_the_user_ends_no_script():
    def evil(x):
        return jnp.sin(x)  # </script><b>

    assert _step().html.count("</script>") == pb.report(evil, jnp.ones(100), path=None).html.count("</script>") == 1


SORTS = """
const seen = () => [...document.querySelectorAll("tr.row")].map(r => Number(r.dataset.k));
document.querySelectorAll("#kernels th")[0].click();
const up = seen(); document.querySelectorAll("#kernels th")[0].click(); const down = seen();
document.querySelector("tr.row").click();
const more = document.querySelector("tr.more").textContent;
document.querySelectorAll("#source div.k")[0].click();
const hot = ["source", "jaxpr", "loops", "asm"].map(id => document.querySelectorAll("#" + id + " div.hot").length);
return {failures: failures, up, down, more, hot, wide: document.documentElement.scrollWidth - innerWidth};
"""


@pytest.mark.parametrize("size", ["1300,900", "500,900"])
def test_page_in_a_browser(browse, size):
    found = browse(_step().html, SORTS, size)
    assert found["failures"] == []
    assert found["up"] == sorted(found["up"]) == found["down"][::-1] and len(found["up"]) > 1
    assert "What kept it from fusing further" in found["more"]
    assert all(found["hot"]), found
    assert found["wide"] <= 0  # nothing sticks out


def test_program_without_kernels_in_a_browser(browse):
    look = """const shown = id => document.getElementById(id).getClientRects().length > 0;
    return [failures, shown("none"), shown("strip"), shown("kernels")];"""
    assert browse(pb.report(lambda x: x + 1, 1.0, path=None).html, look) == [[], True, False, False]
    assert browse(_step().html, look) == [[], False, True, True]


def test_collectives_in_a_browser(browse):
    look = """const rows = document.querySelectorAll("#collectives tr.link"); rows[0].click();
    return [failures, rows.length, document.getElementById("exchanges").hidden,
            document.querySelectorAll("#source div.hot").length, document.querySelectorAll("tr.row.on").length];"""
    failures, rows, hidden, hot, on = browse(_centred()[0].html, look)
    assert failures == [] and rows == 1 and not hidden and hot == 1 and on > 1


THEMES = """
const back = () => getComputedStyle(document.body).backgroundColor, first = back();
document.getElementById("theme").click();
return [failures, first, back(), document.getElementById("theme").textContent];
"""


def test_themes(browse):
    failures, first, second, label = browse(_step().html, THEMES)
    assert failures == [] and first != second
    assert label in ("Light", "Dark")
