"""Where maintenance is announced: a folder or a file for each source.

To add one, add its file or folder, and its name here. The names are in the order of a node's readings in
reports. `reconciler/plugins.py` loads only the parts that a program needs.
"""

SOURCES = ("condition", "imds", "request", "named_condition", "arm", "aws")
