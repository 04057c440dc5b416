"""Transports: each sends a delivery to one kind of receiver. One file each, and a line in registry.py."""
