"""Keeps workloads out of the way of platform maintenance on Kubernetes nodes."""

__version__ = "0.1.0"
# The commit that an image or a package of a release is built from, which the build writes here.
__commit__ = ""
USER_AGENT = f"node-maintenance-reconciler/{__version__}"
