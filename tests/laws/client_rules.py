"""Rules of the clients, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_RETRYING = "reconciler/clients/retrying.py"
_PLAIN = "reconciler/clients/kubernetes/plain_access.py"
_ACCESS_TEST = "tests/clients/kubernetes/test_access.py"
_CONNECTION = "reconciler/clients/kubernetes/connection.py"
_LIMITS_TEST = "tests/clients/kubernetes/test_limits.py"
_MEMORY_TEST = "tests/clients/kubernetes/test_memory.py"
_PATHS = "reconciler/clients/kubernetes/paths.py"
_PATHS_TEST = "tests/clients/kubernetes/test_paths.py"

CLIENT_RULES = (
    Mutant(
        0,
        "a write whose answer was lost is not repeated",
        _RETRYING,
        "if settled():",
        "if settled() and False:",
        "tests/clients/test_retrying.py",
    ),
    Mutant(
        0,
        "a writer waits as long as the server asks for",
        _RETRYING,
        "failure.retry_after or 0.0)",
        "0.0)",
        "tests/clients/test_retrying.py",
    ),
    Mutant(
        0,
        "a Retry-After date in the past is no wait",
        "reconciler/clients/retry_after.py",
        "max(0.0, moment - wall())",
        "moment - wall()",
        "tests/clients/test_retry_after.py",
    ),
    Mutant(
        0,
        "the server's certificate is verified",
        _PLAIN,
        "ssl.CERT_NONE if insecure else ssl.CERT_REQUIRED",
        "ssl.CERT_NONE",
        _ACCESS_TEST,
    ),
    Mutant(
        0,
        "a broken authority is not the system's",
        _PLAIN,
        'if b"-----BEGIN " not in content:',
        "if False:",
        _ACCESS_TEST,
    ),
    Mutant(
        0,
        "nobody is asked for a key's password",
        _PLAIN,
        ", password=_no_password",
        "",
        _ACCESS_TEST,
    ),
    Mutant(
        0,
        "unknown keys are for the official package",
        _PLAIN,
        'set(user) - {"token"} in (set(), _FILES, _DATA)',
        "True",
        _ACCESS_TEST,
    ),
    Mutant(
        0,
        "proxies are for the official package",
        _PLAIN,
        "return named or not",
        "return not",
        _ACCESS_TEST,
    ),
    Mutant(
        0,
        "a drain by hand loads no settings",
        "jobs/commands/drain.py",
        "from reconciler.claim import ClaimRefused, claim",
        "import reconciler.run\nfrom reconciler.claim import ClaimRefused, claim",
        "tests/jobs/test_drain_start.py",
    ),
    Mutant(
        16,
        "a name that no object can have reaches no path",
        _PATHS,
        "if not is_object_name(name):",
        "if False:",
        _PATHS_TEST,
    ),
    Mutant(
        16,
        "a path that was not built from names is checked before it is sent",
        _CONNECTION,
        "if not isinstance(self.path, ApiPath):",
        "if False:",
        _PATHS_TEST,
    ),
    Mutant(
        16,
        "a Machine whose owner has a hostile name is a problem of that machine",
        "reconciler/clients/kubernetes/machines/machine_sets.py",
        "except (Unreadable, Rejected) as error:",
        "except Unreadable as error:",
        _PATHS_TEST,
    ),
    Mutant(
        16,
        "the agent sends no request for a Node that can't exist",
        "reconciler/clients/agent/own_node.py",
        "if not is_object_name(node):",
        "if False:",
        _PATHS_TEST,
    ),
    Mutant(
        16,
        "an answer has a total time, in its headers too",
        "reconciler/clients/bounded.py",
        "if seconds <= 0:",
        "if False:",
        _LIMITS_TEST,
    ),
    Mutant(
        16,
        "a body has a limit",
        _CONNECTION,
        "            if left < 0:",
        "            if False:",
        _LIMITS_TEST,
    ),
    Mutant(
        16,
        "no encoding is decoded",
        _CONNECTION,
        'if response.status < 300 and encoding in ("", "identity"):',
        "if response.status < 300:",
        _LIMITS_TEST,
    ),
    Mutant(
        16,
        "a watch event has a limit",
        "reconciler/clients/kubernetes/watching.py",
        "if sum(map(len, rest)) > LARGEST_EVENT:",
        "if False:",
        _LIMITS_TEST,
    ),
    Mutant(
        18,
        "of a pod's annotations only those that are read are kept",
        "reconciler/clients/kubernetes/wire/reducing.py",
        "if key in annotations}",
        "if key in annotations} | dict(annotations)",
        _MEMORY_TEST,
    ),
    Mutant(
        18,
        "a pod's labels have a limit",
        "reconciler/clients/kubernetes/wire/reducing.py",
        "if len(found) > LABELS:",
        "if False:",
        _MEMORY_TEST,
    ),
    Mutant(
        18,
        "the selector of a PodDisruptionBudget has a limit",
        "reconciler/clients/kubernetes/wire/reducing.py",
        "_size(selector) > SELECTOR:",
        "False:",
        _MEMORY_TEST,
    ),
    Mutant(
        18,
        "a reference of a pod has a limit",
        "reconciler/clients/kubernetes/wire/reducing.py",
        "(limits.text(part[:_REFERENCE]) for part in parts)",
        "parts",
        _MEMORY_TEST,
    ),
    Mutant(
        18,
        "a page that is too large is requested in smaller ones",
        "reconciler/clients/kubernetes/wire/lists.py",
        "if size <= 1:",
        "if True:",
        _MEMORY_TEST,
    ),
    Mutant(
        18,
        "a list that repeats itself ends",
        "reconciler/clients/kubernetes/wire/lists.py",
        "following == token or ",
        "",
        _MEMORY_TEST,
    ),
)
