"""Values of the chart that are not the defaults."""

from __future__ import annotations

from typing import Any

EVERYTHING: dict[str, Any] = {
    "imagePullSecrets": [{"name": "pull"}],
    "image": {"digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "pods": {
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "ours", "operator": "Exists"}],
        "labels": {"team": "a"},
        "annotations": {"example.com/a": "b"},
        "args": ["--namespace=node-maintenance"],
        "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "volumes": [{"name": "secrets", "secret": {"secretName": "notify"}}],
        "volumeMounts": [{"name": "secrets", "mountPath": "/secrets", "readOnly": True}],
    },
    "agent": {
        "enabled": True,
        "address": "0.0.0.0",
        "resources": {"limits": {"memory": "64Mi"}},
        "nodeSelector": {"azure": "yes"},
        "tolerations": [{"key": "ours", "operator": "Exists"}],
    },
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "ARN"}},
    "networkPolicies": {"egressPorts": [587], "monitoringNamespaces": ["observability"]},
    "admissionPolicies": {
        "triggerLabels": ["a.example.com/l"],
        "triggerAnnotations": ["a.example.com/a"],
        "triggerTaints": ["a.example.com/t"],
        "triggerFinalizers": ["a.example.com/f"],
    },
}
