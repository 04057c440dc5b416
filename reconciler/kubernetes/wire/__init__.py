"""Kubernetes on the wire: protobuf and JSON to values of the model."""
