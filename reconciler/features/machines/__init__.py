"""Machine providers: each decides from a node alone whether the node's machine is its own."""
