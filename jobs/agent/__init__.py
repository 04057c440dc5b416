"""The node agent: standard library only, one pod per node."""
