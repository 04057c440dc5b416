"""Plays the same events against several policies, and compares what becomes of the cases."""
