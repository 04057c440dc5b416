"""Clients of the machine providers whose machines are objects of the cluster."""
