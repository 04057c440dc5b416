"""Requests to anybody: limits, retries, and what is said of failures."""
