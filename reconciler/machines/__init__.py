"""Machine providers: each knows, from a node alone, whether the node's machine is its own."""
