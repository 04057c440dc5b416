"""Thousands of nodes, and API servers that answer slowly: what reads the same as the plain way, for less."""
