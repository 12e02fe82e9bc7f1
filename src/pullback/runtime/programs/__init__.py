"""Compiled programs: how they are made, kept, found again, and called."""
