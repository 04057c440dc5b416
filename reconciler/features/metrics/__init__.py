"""What the reconciler measures: which series there are, and their values."""
