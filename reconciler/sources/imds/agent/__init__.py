"""The node agent. It runs on every node and uses only the standard library."""
