"""Passes that choose how nests run: order, lanes, tiles, threads, and what each is estimated to cost."""
