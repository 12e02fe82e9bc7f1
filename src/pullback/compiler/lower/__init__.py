"""From flat jaxprs to loop nests: `lower_program` is the entry; read program, values, nests, reductions, placing."""

from pullback.compiler.lower.program import HostFunction, Lowered, NestFact, lower_program

__all__ = ["HostFunction", "Lowered", "NestFact", "lower_program"]
