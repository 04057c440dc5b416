"""Maintenance that people request."""
