"""Kubernikus: nodes whose kubelet is behind, and nodes that are deleted, with their servers in OpenStack."""
