"""The commands: one file each; arguments come from `jobs/cli.py`."""
