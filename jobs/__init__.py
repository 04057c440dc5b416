"""Jobs: one file per process; arguments, clock, environment and exit codes, and no rules."""
