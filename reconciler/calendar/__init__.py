"""Windows and freezes: when drains may start, in UTC intervals."""
