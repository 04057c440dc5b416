"""Keeps workloads out of the way of platform maintenance on Kubernetes nodes."""

__version__ = "0.1.0"
# The commit that an image or a package of a release is built from, which the build writes here.
__commit__ = ""
USER_AGENT = f"node-maintenance-reconciler/{__version__}"


class ReconcilerError(Exception):
    """The base of all errors that this program raises on purpose, see reconciler/model/errors.py."""

    exit_code = 1
