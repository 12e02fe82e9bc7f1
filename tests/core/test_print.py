"""Jaxprs as text: the format is JAX's, character by character."""

from __future__ import annotations

import re
import textwrap

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X = np.arange(3, dtype=np.float32)
M = np.ones((2, 3), np.float32)


def sines(count):
    def foo(x):
        for _ in range(count):
            x = jnp.sin(x)
        return x

    return foo


def foo(x):
    return jnp.sin(x) * 2


shared = jax.jit(foo)


@jax.custom_jvp
def halved(x):
    return x / 2


@halved.defjvp
def halved_jvp(primals, tangents):
    return halved(*primals), tangents[0]


@jax.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (doubled(x), None), lambda _, bar: (bar,))
doubled.fwd.__name__, doubled.bwd.__name__ = "doubled_fwd", "doubled_bwd"

CASES = {
    "a short one is on one line": (
        lambda x: jnp.sin(x) * x,
        (X,),
        """
        { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b a in (c,) }
        """,
    ),
    "nothing inside": (
        lambda x: (x, 2),
        (1.0,),
        """
        { lambda ; a:f32[]. let  in (a, 2:i32[]) }
        """,
    ),
    "a longer one": (
        lambda x: jnp.exp(jnp.sin(x) * 2 + x) / jnp.cos(x) - x,
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = sin a
            c:f32[3] = mul b 2.0:f32[]
            d:f32[3] = add c a
            e:f32[3] = exp d
            f:f32[3] = cos a
            g:f32[3] = div e f
            h:f32[3] = sub g a
          in (h,) }
        """,
    ),
    "constants": (
        lambda x: x + X,
        (X,),
        """
        { lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }
        """,
    ),
    "unused results": (
        lambda x: (jnp.sin(x), x)[1],
        (1.0,),
        """
        { lambda ; a:f32[]. let _:f32[] = sin a in (a,) }
        """,
    ),
    "unused results within": (
        lambda x: jax.jit(lambda y: (jnp.sin(y), y)[1])(x),
        (1.0,),
        """
        { lambda ; a:f32[]. let
            b:f32[] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:f32[]. let c:f32[] = sin a in (a,) }
            ] a
          in (b,) }
        """,
    ),
    "parameters": (
        lambda x: x.reshape(3, 1).astype(int).sum(0),
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3,1] = reshape[dimensions=None new_sizes=(3, 1) sharding=None] a
            c:i32[3,1] = convert_element_type[new_dtype=int32 weak_type=False] b
            d:i32[1] = reduce_sum[axes=(0,) out_sharding=None] c
          in (d,) }
        """,
    ),
    "a jitted function": (
        lambda x: jax.jit(foo)(x) + 1,
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = jit[
              name=foo
              jaxpr={ lambda ; a:f32[3]. let
                  c:f32[3] = sin a
                  b:f32[3] = mul c 2.0:f32[]
                in (b,) }
            ] a
            d:f32[3] = add b 1.0:f32[]
          in (d,) }
        """,
    ),
    "a jitted function that fits": (
        lambda x: jax.jit(sines(0))(x),
        (1.0,),
        """
        { lambda ; a:f32[]. let
            b:f32[] = jit[name=foo jaxpr={ lambda ; a:f32[]. let  in (a,) }] a
          in (b,) }
        """,
    ),
    "a jitted function in another": (
        lambda x: jax.jit(lambda y: jax.jit(foo)(y) + y)(x),
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = jit[
              name=<lambda>
              jaxpr={ lambda ; a:f32[3]. let
                  c:f32[3] = jit[
                    name=foo
                    jaxpr={ lambda ; a:f32[3]. let
                        d:f32[3] = sin a
                        c:f32[3] = mul d 2.0:f32[]
                      in (c,) }
                  ] a
                  b:f32[3] = add c a
                in (b,) }
            ] a
          in (b,) }
        """,
    ),
    "called twice": (
        lambda x: shared(shared(x)),
        (X,),
        """
        let foo = { lambda ; a:f32[3]. let
            b:f32[3] = sin a
            c:f32[3] = mul b 2.0:f32[]
          in (c,) } in
        { lambda ; d:f32[3]. let
            e:f32[3] = jit[name=foo jaxpr=foo] d
            f:f32[3] = jit[name=foo jaxpr=foo] e
          in (f,) }
        """,
    ),
    "a long body": (
        lambda x: jax.jit(sines(11))(x),
        (1.0,),
        """
        let foo = { lambda ; a:f32[]. let
            b:f32[] = sin a
            c:f32[] = sin b
            d:f32[] = sin c
            e:f32[] = sin d
            f:f32[] = sin e
            g:f32[] = sin f
            h:f32[] = sin g
            i:f32[] = sin h
            j:f32[] = sin i
            k:f32[] = sin j
            l:f32[] = sin k
          in (l,) } in
        { lambda ; m:f32[]. let n:f32[] = jit[name=foo jaxpr=foo] m in (n,) }
        """,
    ),
    "donated": (
        lambda x: jax.jit(foo, donate_argnums=0)(x),
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = jit[
              name=foo
              donated_invars=(True,)
              jaxpr={ lambda ; a:f32[3]. let
                  c:f32[3] = sin a
                  b:f32[3] = mul c 2.0:f32[]
                in (b,) }
            ] a
          in (b,) }
        """,
    ),
    "scan": (
        lambda x: lax.scan(lambda c, y: (c * y, c), x[0], x),
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[1] = slice[limit_indices=(1,) start_indices=(0,) strides=None] a
            c:f32[] = squeeze[dimensions=(0,)] b
            d:f32[] e:f32[3] = scan[
              jaxpr={ lambda ; f:f32[] g:f32[]. let h:f32[] = mul f g in (h, f) }
              length=3
              num_carry=1
              num_consts=0
              reverse=False
              unroll=1
            ] c a
          in (d, e) }
        """,
    ),
    "while": (
        lambda x, n: lax.while_loop(lambda c: c < n, lambda c: c * 2 + x, x),
        (1.0, 3.0),
        """
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = while[
              body_jaxpr={ lambda ; d:f32[] e:f32[]. let
                  f:f32[] = mul e 2.0:f32[]
                  g:f32[] = add f d
                in (g,) }
              body_nconsts=1
              cond_jaxpr={ lambda ; h:f32[] i:f32[]. let j:bool[] = lt i h in (j,) }
              cond_nconsts=1
            ] b a a
          in (c,) }
        """,
    ),
    "cond": (
        lambda x: lax.cond(x > 0, lambda x: x * 2, lambda x: x - 1, x),
        (1.0,),
        """
        { lambda ; a:f32[]. let
            b:bool[] = gt a 0.0:f32[]
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
            d:f32[] = cond[
              branches=(
                { lambda ; e:f32[]. let f:f32[] = sub e 1.0:f32[] in (f,) }
                { lambda ; g:f32[]. let h:f32[] = mul g 2.0:f32[] in (h,) }
              )
            ] c a
          in (d,) }
        """,
    ),
    "cond that fits": (
        lambda x: lax.cond(x, lambda: (), lambda: ()),
        (True,),
        """
        { lambda ; a:bool[]. let
            b:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
            cond[branches=({ lambda ; . let  in () } { lambda ; . let  in () })] b
          in () }
        """,
    ),
    "checkpoint": (
        jax.checkpoint(lambda x: jnp.sin(x)),
        (1.0,),
        """
        { lambda ; a:f32[]. let
            b:f32[] = remat2[
              differentiated=False
              jaxpr={ lambda ; c:f32[]. let d:f32[] = sin c in (d,) }
              policy=None
              prevent_cse=True
            ] a
          in (b,) }
        """,
    ),
    "custom jvp": (
        lambda x: halved(x) + 1,
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = custom_jvp_call[
              name=halved
              call_jaxpr={ lambda ; c:f32[3]. let d:f32[3] = div c 2.0:f32[] in (d,) }
              jvp=halved_jvp
              symbolic_zeros=False
            ] a
            e:f32[3] = add b 1.0:f32[]
          in (e,) }
        """,
    ),
    "custom vjp": (
        doubled,
        (1.0,),
        """
        { lambda ; a:f32[]. let
            b:f32[] = custom_vjp_call[
              name=doubled
              bwd=doubled_bwd
              call_jaxpr={ lambda ; c:f32[]. let d:f32[] = mul c 2.0:f32[] in (d,) }
              fwd=doubled_fwd
              symbolic_zeros=False
            ] a
          in (b,) }
        """,
    ),
    "long lists": (
        lambda *xs: jnp.concatenate(xs),
        [X] * 30,
        """
        { lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3] e:f32[3] f:f32[3] g:f32[3] h:f32[3]
            i:f32[3] j:f32[3] k:f32[3] l:f32[3] m:f32[3] n:f32[3] o:f32[3] p:f32[3] q:f32[3]
            r:f32[3] s:f32[3] t:f32[3] u:f32[3] v:f32[3] w:f32[3] x:f32[3] y:f32[3] z:f32[3]
            ba:f32[3] bb:f32[3] bc:f32[3] bd:f32[3]. let
            be:f32[90] = concatenate[dimension=0] a b c d e f g h i j k l m n o p q r s t
              u v w x y z ba bb bc bd
          in (be,) }
        """,
    ),
    "long lists of results": (
        lambda *xs: lax.optimization_barrier(xs),
        [X] * 30,
        """
        { lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3] e:f32[3] f:f32[3] g:f32[3] h:f32[3]
            i:f32[3] j:f32[3] k:f32[3] l:f32[3] m:f32[3] n:f32[3] o:f32[3] p:f32[3] q:f32[3]
            r:f32[3] s:f32[3] t:f32[3] u:f32[3] v:f32[3] w:f32[3] x:f32[3] y:f32[3] z:f32[3]
            ba:f32[3] bb:f32[3] bc:f32[3] bd:f32[3]. let
            be:f32[3] bf:f32[3] bg:f32[3] bh:f32[3] bi:f32[3] bj:f32[3] bk:f32[3] bl:f32[3]
              bm:f32[3] bn:f32[3] bo:f32[3] bp:f32[3] bq:f32[3] br:f32[3] bs:f32[3] bt:f32[3]
              bu:f32[3] bv:f32[3] bw:f32[3] bx:f32[3] by:f32[3] bz:f32[3] ca:f32[3] cb:f32[3]
              cc:f32[3] cd:f32[3] ce:f32[3] cf:f32[3] cg:f32[3] ch:f32[3] = optimization_barrier a
              b c d e f g h i j k l m n o p q r s t u v w x y z ba bb bc bd
          in (be, bf, bg, bh, bi, bj, bk, bl, bm, bn, bo, bp, bq, br, bs, bt, bu, bv, bw,
            bx, by, bz, ca, cb, cc, cd, ce, cf, cg, ch) }
        """,
    ),
    "literals": (
        lambda x: (x + np.inf) * -1.5 * np.float32(0.1),
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = add a inf:f32[]
            c:f32[3] = mul b -1.5:f32[]
            d:f32[3] = mul c 0.10000000149011612:f32[]
          in (d,) }
        """,
    ),
    "elements at places": (
        lambda x, i: x[i],
        (X, np.int32(1)),
        """
        { lambda ; a:f32[3] b:i32[]. let
            c:bool[] = lt b 0:i32[]
            d:i32[] = add b 3:i32[]
            e:i32[] = select_n c b d
            f:f32[1] = dynamic_slice[slice_sizes=(1,)] a e
            g:f32[] = squeeze[dimensions=(0,)] f
          in (g,) }
        """,
    ),
    "keys of words": (
        jax.random.wrap_key_data,
        (np.zeros(2, np.uint32),),
        """
        { lambda ; a:u32[2]. let b:key<fry>[] = random_wrap[impl=fry] a in (b,) }
        """,
    ),
    "a function that is written in place": (
        jax.nn.gelu,
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:f32[3] = integer_pow[y=3] a
            c:f32[3] = mul 0.044714998453855515:f32[] b
            d:f32[3] = add a c
            e:f32[3] = mul 0.7978845834732056:f32[] d
            f:f32[3] = tanh e
            g:f32[3] = add 1.0:f32[] f
            h:f32[3] = mul 0.5:f32[] g
            i:f32[3] = mul a h
          in (i,) }
        """,
    ),
    "complex literals": (
        lambda x: x * (1 + 2j),
        (X,),
        """
        { lambda ; a:f32[3]. let
            b:c64[3] = convert_element_type[new_dtype=complex64 weak_type=False] a
            c:c64[3] = mul b (1+2j):c64[]
          in (c,) }
        """,
    ),
    "matrix product": (
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.float32),
        (M, M.T),
        """
        { lambda ; a:f32[2,3] b:f32[3,2]. let
            c:f32[2,2] = dot_general[
              dimension_numbers=(([1], [0]), ([], []))
              preferred_element_type=float32
            ] a b
          in (c,) }
        """,
    ),
}


def test_the_text_is_jax_s():
    for name, (call, args, text) in CASES.items():
        assert str(jax.make_jaxpr(call)(*args)) == textwrap.dedent(text).strip("\n"), name


def test_an_equation_alone_names_its_results_first():
    assert str(jax.make_jaxpr(lambda x: jnp.sin(x) * x)(X).eqns[1]) == "a:f32[3] = mul b c"


def test_lines_and_scopes_follow_the_equations():
    def scoped(x):
        with jax.named_scope("outer"), jax.named_scope("inner"):
            return jnp.sin(x)

    jaxpr = jax.make_jaxpr(scoped)(X)
    assert jaxpr.pretty_print(name_stack=True).endswith("in (b,) } # [outer/inner]")
    place = r"test_print\.py:\d+:19 \(test_lines_and_scopes_follow_the_equations\.<locals>\.scoped\)"
    assert re.search(place, jaxpr.pretty_print(source_info=True))


@pytest.mark.parametrize(
    "transform, stacks",
    [
        (lambda f: jax.vmap(f), ["vmap(s)"]),
        (lambda f: lambda x: jax.jvp(f, (x,), (x,)), ["jvp(s)"] * 3),
        (lambda f: lambda x: jax.vmap(jax.grad(f))(x), ["vmap(jvp(s))"] * 2 + ["vmap(transpose(jvp(s)))"]),
    ],
)
def test_scopes_know_the_transformations_around_them(transform, stacks):
    def f(x):
        with jax.named_scope("s"):
            return jnp.sin(x)

    eqns = jax.make_jaxpr(transform(f))(X).eqns
    assert [str(eqn.source_info.name_stack) for eqn in eqns] == stacks


def test_transformations_are_written_around_the_scope_that_comes_next():
    def f(x):
        with jax.named_scope("a"), jax.named_scope("b"):
            y = jnp.sin(x)
        return y.sum()

    eqns = jax.make_jaxpr(jax.grad(f))(X).eqns
    stacks = [str(eqn.source_info.name_stack) for eqn in eqns]
    assert stacks[0] == "jvp(a)/b" and "jvp()" in stacks and stacks[-1] == "transpose(jvp(a))/b"


def test_equations_of_functions_of_ours_have_source_info_too():
    (inner,) = [e.params["jaxpr"] for e in jax.make_jaxpr(jax.nn.softplus)(X).eqns if e.primitive.name == "jit"]
    eqn = inner.eqns[0]
    assert str(eqn.source_info.name_stack) == "" and eqn.replace(source_info=eqn.source_info).source is None


def test_many_equations_print_in_linear_time():
    text = str(jax.make_jaxpr(sines(2000))(1.0))
    assert text.count("\n") == 2001


def test_tracers_as_text():
    seen = []

    def f(x):
        seen.append(repr(x))
        return x

    jax.jit(f)(1.0)
    jax.vmap(f)(jnp.ones(3))
    jax.grad(f)(1.0)
    jax.jvp(f, (1.0,), (2.0,))
    jax.jit(jax.grad(f))(1.0)
    jax.vmap(jax.grad(f))(jnp.ones(2))
    assert seen == [
        "JitTracer(~float32[])",
        "VmapTracer(aval=float32[], batched=float32[3])",
        "GradTracer(primal=1.0, typeof(tangent)=f32[])",
        "JVPTracer(primal=1.0, tangent=2.0)",
        "GradTracer(primal=JitTracer(~float32[]), typeof(tangent)=f32[])",
        "GradTracer(primal=VmapTracer(aval=float32[], batched=float32[2]), typeof(tangent)=f32[])",
    ]


def test_types_are_short_on_demand():
    aval = jax.typeof(jnp.ones((2, 3)))
    assert (aval.str_short(), aval.str_short(True), aval.short()) == ("float32[2,3]", "f32[2,3]", "f32[2,3]")


def test_element_types_of_products_are_shown_in_double_precision():
    with jax.enable_x64(True):
        assert "preferred_element_type=float64" in str(jax.make_jaxpr(lambda x: x @ x)(jnp.ones((2, 2))))


@pytest.mark.parametrize("name, joined", [("add", "add"), ("multiply", "mul"), ("min", "min"), ("max", "max")])
def test_scatters_say_what_joins_elements(name, joined):
    text = str(jax.make_jaxpr(lambda x: getattr(x.at[jnp.array([1])], name)(2.0))(X))
    (line,) = [line.strip() for line in text.splitlines() if "update_jaxpr" in line]
    form = rf"update_jaxpr={{ lambda ; (\w):f32\[\] (\w):f32\[\]\. let (\w):f32\[\] = {joined} \1 \2 in \(\3,\) }}"
    assert re.fullmatch(form, line)
    assert "update_jaxpr=None" in str(jax.make_jaxpr(lambda x: x.at[jnp.array([1])].set(2.0))(X))


def test_scatters_have_the_program_that_joins_elements():
    index = jnp.array([1])
    adds = jax.make_jaxpr(lambda x: x.at[index].add(2.0))(X)
    gradients = jax.make_jaxpr(jax.grad(lambda x: (x[index] ** 2).sum()))(X)
    for traced in (adds, gradients):
        (eqn,) = [e for e in traced.eqns if e.primitive.name == "scatter-add"]
        join = eqn.params["update_jaxpr"]
        assert isinstance(join, jax.extend.core.Jaxpr) and [e.primitive.name for e in join.eqns] == ["add"]
        assert [v.aval for v in join.invars] == [jax.typeof(jnp.float32(1))] * 2
    x, y = jnp.float32(3), jnp.float32(4)
    assert jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(join, ()))(x, y) == [7.0]


def test_options_of_pretty_print():
    jaxpr = jax.make_jaxpr(lambda x: jax.jit(lambda y: y + 1)(x) @ x)(X)
    assert ":f32" not in jaxpr.pretty_print(print_shapes=False).replace("1.0:f32[]", "")
    assert jaxpr.pretty_print(print_effects=True).endswith(") : {  } }")
    shown = jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(X).pretty_print(print_effects=True)
    assert shown.endswith("in () : { Debug } }")
    plain = jaxpr.pretty_print(custom_pp_eqn_rules=False)
    assert "precision=None" in plain and plain.index("keep_unused=False") < plain.index("name=<lambda>")
    colored = jaxpr.pretty_print(use_color=True)
    assert colored.startswith("{ \x1b[34;1mlambda \x1b[39;22m; a\x1b[35m:f32[")
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == jaxpr.pretty_print() == str(jaxpr)
    assert len(jaxpr.pretty_print(width=1000).split("\n")) < len(jaxpr.pretty_print(width=40).split("\n"))
    both = jaxpr.pretty_print(source_info=True, name_stack=True).split("\n")
    assert sum(line.endswith("# []") for line in both) == 3
    with pytest.raises(TypeError, match="colour"):
        jaxpr.pretty_print(colour=True)


def test_scans_leave_out_what_their_bodies_pass_on():
    def f(xs):
        return jax.lax.scan(lambda c, x: ((c[0] + x * c[1], c[1], c[2]), (x, c[0], x)), (0.0, 2.0, X), xs)

    (eqn,) = jax.make_jaxpr(f)(X).jaxpr.eqns
    assert (eqn.params["num_consts"], eqn.params["num_carry"], len(eqn.outvars)) == (2, 1, 2)
    for reverse in (False, True):
        scan = lambda xs, reverse=reverse: jax.lax.scan(
            lambda c, x: ((c[1], c[1]), x), (xs[0], 3.0), xs, reverse=reverse
        )
        (first, second), rows = scan(X)
        assert (first, second) == (3, 3) and (rows == X).all() and rows.dtype == X.dtype
    (total, two, same), (rows, before, _) = jax.jit(f)(X)
    assert total == 2 * X.sum() and two == 2 and (same == X).all() and (rows == X).all() and before[0] == 0
    slope = jax.grad(lambda xs: sum(map(jnp.sum, jax.tree.leaves(f(xs)))))(X)
    assert slope.shape == X.shape and (slope[:-1] > slope[1:]).all()
    assert (jax.vmap(f)(jnp.stack([X, 2 * X]))[0][0] == jnp.array([2, 4]) * X.sum()).all()
    (eqn,) = jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, y: (c, y), 1.0, x))(X).jaxpr.eqns  # readers see it
    assert eqn.outvars == [] and not eqn.params["jaxpr"].eqns


def test_names_of_what_stands_in_front_are_names_of_nothing_else():
    @jax.jit
    def b(x):
        return jnp.sin(x) * 2.0

    text = str(jax.make_jaxpr(lambda x: b(b(x)))(1.0))
    assert text.startswith("let b = { lambda ; a:f32[]. let") and "c:f32[] = sin a" in text
    assert " b:f32" not in text


def test_functions_among_parameters_are_shown_as_such():
    everything = jax.checkpoint_policies.everything_saveable
    text = str(jax.make_jaxpr(jax.checkpoint(jnp.sin, policy=everything))(1.0))
    assert "policy=<function everything_saveable at 0xXXXXXXXXXXXX>" in text
    (eqn,) = jax.make_jaxpr(lambda x: x + 2.0)(1.0).eqns
    assert (repr(eqn.invars[1]), str(eqn.invars[1])) == ("Literal(2.0)", "2.0:f32[]")
