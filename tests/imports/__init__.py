"""Which file imports which."""
