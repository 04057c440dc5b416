"""Triggers: one small file each; a trigger says what is to become of the node and its record."""
