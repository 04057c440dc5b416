"""Completion in shells: what can be typed next, also through kubectl."""
