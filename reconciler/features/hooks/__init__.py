"""Hooks: Jobs, requests and annotations that hold a step of a node."""
