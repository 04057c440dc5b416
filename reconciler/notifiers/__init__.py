"""Notifiers:

each reports to people what a pass did about a node. One file each, and a line in registry.py.
"""
