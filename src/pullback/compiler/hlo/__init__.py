"""A traced program written as HLO, the text form of XLA's programs, for tools and tests that read it.

Nothing is compiled from it, and nothing was optimized before it: it says which operations a program has, on what
types, with what attributes. What HLO has no operation for is a custom call with the primitive's name, and so is what
would need a long program there that nobody reads (sorts by several keys, places of extrema).

    ENTRY main.1 {
      x.1 = f32[2,3]{1,0} parameter(0)
      dot_general.1 = f32[2,2]{1,0} dot(x.1, x.1), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      constant.1 = f32[] constant(1)
      broadcast.1 = f32[2,2]{1,0} broadcast(constant.1), dimensions={}
      ROOT add.1 = f32[2,2]{1,0} add(dot_general.1, broadcast.1)
    }
"""

from pullback.compiler.hlo.module import HloModule

__all__ = ["HloModule"]
