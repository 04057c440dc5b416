"""What the program does beside its core: a folder for each feature, which `reconciler/plugins.py` finds."""
