"""Kernels written in Pallas, of which libraries import names (keras): none is here."""
