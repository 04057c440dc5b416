"""The commands: one file each, with its `command`; `jobs/cli.py` lists them."""
