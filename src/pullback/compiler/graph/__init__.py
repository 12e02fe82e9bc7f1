"""Passes from jaxpr to jaxpr, one per file, each a pure function; `fuse` says which equations share a loop nest."""
