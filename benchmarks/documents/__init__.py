"""What five public documents show of JAX, measured again on this machine: a file for each program, tables and prose
that are made of the measured values, written to docs/documents.md."""
