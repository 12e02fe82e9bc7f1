"""Passes that leave fewer or cheaper equations: one table of rules, and what stands beside it."""
