"""kubernikusCount: whether the cluster has as many nodes as its node pools in Kubernikus."""

from __future__ import annotations

from reconciler.features.workflows.input import CheckInput
from reconciler.features.workflows.plugins import check_type
from reconciler.model.check_reads import KubernikusAnswer, KubernikusQuery, Needs
from reconciler.profiles.plugins import CheckResult, failed, passed, unknown
from reconciler.settings.sections.check_types import KubernikusCountCheck


def _query(config: KubernikusCountCheck) -> KubernikusQuery:
    url, secret = config.url or "", config.cloud_provider_secret
    if secret.name and secret.namespace:
        return KubernikusQuery(config.cluster, secret.namespace, secret.name, url=url)
    return KubernikusQuery(config.cluster, file=config.credentials_file, url=url)


def _needs(config: KubernikusCountCheck) -> Needs:
    return Needs(kubernikus=frozenset({_query(config)}))


@check_type("kubernikusCount", KubernikusCountCheck, _needs)
def kubernikus_count(config: KubernikusCountCheck, given: CheckInput) -> CheckResult:
    """Pass when the cluster has at least the nodes of all node pools. Without an answer, it is unknown."""
    answer = given.read.kubernikus.get(_query(config), KubernikusAnswer(problem="it was not asked"))
    if answer.problem:
        return unknown(f"Kubernikus, {config.cluster}: {answer.problem}")
    count = len(given.members)
    said = f"the cluster has {count} nodes, and its node pools have {answer.nodes}"
    return passed(said) if count >= answer.nodes else failed(said)
