"""The node agent's clients: IMDS and its own Node, with the standard library alone."""
