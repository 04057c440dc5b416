"""Publishers: each shows the state of a case to other tools. One file each, and a line in feature.py."""
