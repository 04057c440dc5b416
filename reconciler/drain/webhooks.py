"""Which admission webhook or policy denied a request, from the message of the API server.

Some webhooks make evictions cooperative. They deny the eviction, and then the controller of the pod moves it:

- Strimzi's drain cleaner denies with 500 and `The pod will be rolled by the Strimzi Cluster Operator`, after
  it has set `strimzi.io/manual-rolling-update` on the pod (strimzi/drain-cleaner, ValidatingWebhook.java).
- KubeVirt denies with 429, after it has set `status.evacuationNodeName` of the VirtualMachineInstance, which
  starts a live migration (kubevirt, pkg/virt-api/webhooks/validating-webhook/admitters/
  pod-eviction-admitter.go).

The status is the choice of the webhook, so only the text tells such a denial from an answer of the API server
itself. The texts are those of k8s.io/apiserver, pkg/admission/plugin/webhook/errors/statuserror.go,
pkg/util/webhook/error.go and pkg/admission/plugin/policy/validating. Only an administrator of the cluster can
create webhooks and policies, but what a webhook says may have text of a tenant in it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from reconciler.model import limits

_LONGEST = 300
_DENIES = re.compile(
    r"admission webhook \"([^\"]+)\" denied the request(?:: (.*)| without explanation)", re.DOTALL
)
_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '([^']+)'(?: with binding '[^']*')? denied request:? ?(.*)", re.DOTALL
)
_FAILS = re.compile(r"failed calling webhook \"([^\"]+)\":? ?(.*)", re.DOTALL)
_FORMS = (
    (_DENIES, "webhook", True),
    (_POLICY, "ValidatingAdmissionPolicy", True),
    (_FAILS, "webhook", False),
)


class Denial(Struct, frozen=True):
    """A request that a webhook or a policy denied.

    `by` names it: `webhook drain-cleaner.strimzi.io`. `words` is its reason in one line, at most 300
    characters. `reached` is False if the API server could not call the webhook, and therefore refuses.
    """

    by: str
    words: str
    reached: bool = True


def read_denial(message: str) -> Denial | None:
    """Return who denied a request, from the API server's message; None if the answer is its own."""
    for pattern, what, reached in _FORMS:
        found = pattern.search(message)
        if found is not None:
            words = " ".join((found[2] or "no reason is given").split())
            name = limits.text(found[1], limits.NAME)
            return Denial(f"{what} {name}", limits.text(words, _LONGEST), reached)
    return None
