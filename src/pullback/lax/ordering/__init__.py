"""Sorts and selections."""
