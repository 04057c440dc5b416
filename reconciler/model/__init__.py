"""Frozen values, ports, limits, and the keys of all objects."""
