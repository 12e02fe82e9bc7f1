"""Passes from loop IR to loop IR, one per file, each a pure function; their order is in `compiler/pipelines.py`."""
