"""Arrays written to and read from files, in the formats of TensorStore (a package of its own, needed for that)."""
