"""Scheduled events of Azure's instance metadata service."""
