"""Transformations as interpreters: jvp, batching, partial evaluation, transposition, calls and custom rules."""
