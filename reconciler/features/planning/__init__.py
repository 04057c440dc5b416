"""What will start when: the cases of a plan until a moment, as a table, a chart, and JSON."""

COMMANDS = {"plan": "Print what will start when, as a table and a chart. It only reads the cluster."}
