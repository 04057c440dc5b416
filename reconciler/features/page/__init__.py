"""The page: one HTML file about the whole fleet, from one plan. It has no script and needs nothing else."""
