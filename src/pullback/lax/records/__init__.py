"""What records of primitives are written with: families, operands, rules, nests."""
