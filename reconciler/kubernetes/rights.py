"""Names the permission that a request needs, so that a person can ask for it."""

from __future__ import annotations

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def right(method: str, path: str) -> str:
    """Return the permission for a request, such as `get configmaps in kube-system`.

    It follows the attributes of the API server (k8s.io/apiserver, pkg/endpoints/request/requestinfo.go). A
    watch has the permission `watch`, which a path alone does not show: it is named `list`, because our
    watches list first. Empty for a path that is not of a resource.
    """
    match path.split("/")[1:]:
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            return ""
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        _, namespace, *rest = rest
    if not rest:
        return ""
    resource, *names = rest
    kind = f"{resource}.{group}" if group else resource
    kind = "/".join((kind, *names[1:]))
    verb = _VERBS.get(method) or ("get" if names else "list")
    return f"{verb} {kind}{f' in {namespace}' if namespace else ''}"
