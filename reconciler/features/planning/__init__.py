"""What will start when: the cases of a plan until a moment, as a table, a chart, and JSON."""
