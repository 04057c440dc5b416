"""Keeps workloads out of the way of platform maintenance on Kubernetes nodes."""

__version__ = "0.1.0"
USER_AGENT = f"node-maintenance-reconciler/{__version__}"
