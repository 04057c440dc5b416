"""Values of the chart that are not the defaults."""

from __future__ import annotations

from typing import Any

EVERYTHING: dict[str, Any] = {
    "imagePullSecrets": [{"name": "pull"}],
    "image": {"digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "replicas": 3,
    "logLevel": "warning",
    "commonLabels": {"cost-center": "42", "team": "platform"},
    "podLabels": {"team": "a"},
    "podAnnotations": {"example.com/a": "b"},
    "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "ours", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]}]
            }
        }
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "serve"}},
        }
    ],
    "priorityClassName": "system-cluster-critical",
    "extraArgs": ["--kubeconfig=/secrets/kubeconfig"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraVolumes": [{"name": "secrets", "secret": {"secretName": "notify"}}],
    "extraVolumeMounts": [{"name": "secrets", "mountPath": "/secrets", "readOnly": True}],
    "service": {"enabled": True, "type": "NodePort", "port": 80, "annotations": {"example.com/s": "t"}},
    "report": {
        "enabled": True,
        "schedule": "0 5 * * *",
        "args": ["--output=markdown"],
        "configMap": True,
        "webhook": {"secretName": "reports", "secretKey": "address"},
    },
    "agent": {
        "enabled": True,
        "address": "",
        "resources": {"limits": {"memory": "64Mi"}},
        "nodeSelector": {"azure": "yes"},
        "tolerations": [{"key": "ours", "operator": "Exists"}],
    },
    "serviceAccount": {"name": "drainer", "annotations": {"eks.amazonaws.com/role-arn": "ARN"}},
    "networkPolicies": {"egressPorts": [587], "monitoringNamespaces": ["observability"]},
    "admissionPolicies": {
        "triggerLabels": ["a.example.com/l"],
        "triggerAnnotations": ["a.example.com/a"],
        "triggerTaints": ["a.example.com/t"],
        "triggerFinalizers": ["a.example.com/f"],
    },
}
