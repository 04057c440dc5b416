"""Where maintenance is announced: a folder or a file for each source, which `reconciler/plugins.py` finds."""
