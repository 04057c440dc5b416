"""Explanations of a node and of a pod."""
