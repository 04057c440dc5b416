"""Maintenance that the ARM API announces."""
