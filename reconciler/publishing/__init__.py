"""Publishers: each shows other tools where a case stands. One file each, and a line in registry.py."""
