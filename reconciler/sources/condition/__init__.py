"""Node conditions of AKS's node-problem-detector: a source, and what writes them in a simulation."""
