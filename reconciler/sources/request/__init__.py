"""Maintenance that people request."""

COMMANDS = {"request": "Request maintenance of nodes, or cancel the request."}
