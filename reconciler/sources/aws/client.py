"""Reads scheduled events from EC2: one paged call per region, for any number of instances.

boto3 is the extra `aws`. The first request imports it, so it costs nothing while AWS is disabled.
Nothing sleeps: a later pass queries a region again that failed or throttled.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from reconciler import USER_AGENT
from reconciler.http.bounded import bound
from reconciler.http.retrying import Guard
from reconciler.model.errors import CloudError
from reconciler.model.polling import Listing
from reconciler.model.problems import internal
from reconciler.settings.foreign import value_of
from reconciler.settings.schema import Settings
from reconciler.sources.aws import source as aws
from reconciler.sources.aws.source import InstanceEvent

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
"""The timeout between two bytes of an answer, in seconds."""

PATIENCE = 90.0
"""Seconds for all regions of one pass; a later pass asks for the rest."""

PAGE = 1000
"""Instances per page, the most that EC2 allows; only those with an event count."""

_LONGEST_PROBLEM = 300

# Regions get new parameters at different times; China and GovCloud have their own.
_UNKNOWN = frozenset(
    {
        "UnknownParameter",
        "InvalidParameter",
        "InvalidParameterValue",
        "InvalidParameterCombination",
        "UnsupportedOperation",
    }
)

Ec2 = Callable[[str], Any]
"""Makes the EC2 client of a region; boto3 has no types."""


def connect() -> Ec2:
    """Return a factory of clients, with the identity that boto3 finds:

    IRSA, Pod Identity, a profile, keys.
    """
    made: dict[str, Any] = {}

    def ec2(region: str) -> Any:
        if region not in made:
            try:
                import boto3
                from botocore.config import Config
            except ImportError as error:
                raise CloudError(
                    "boto3 is not installed: install node-maintenance-reconciler[aws], see docs/aws.md"
                ) from error
            config = Config(
                connect_timeout=CONNECT_TIMEOUT,
                read_timeout=READ_TIMEOUT,
                # A later pass tries again; botocore would sleep in between.
                retries={"total_max_attempts": 1, "mode": "standard"},
                user_agent_extra=USER_AGENT,
            )
            client = boto3.session.Session().client("ec2", region_name=region, config=config)
            # botocore sets no limit to an answer, and has no setting for one.
            bound(client._endpoint.http_session._manager, "ec2")
            made[region] = client
        return made[region]

    return ec2


def for_source(settings: Settings, guard: Guard | None) -> Aws:
    """Return the client of the source `aws`; it only reads."""
    del settings, guard
    return Aws(connect())


class Aws:
    """EC2 as a SourceClient."""

    def __init__(self, ec2: Ec2, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Use this factory of clients; `clock` (seconds) is for patience."""
        self._ec2 = ec2
        self._clock = clock
        self._without_managed: set[str] = set()

    def ask(self, scopes: Sequence[str]) -> tuple[Listing[str, InstanceEvent], ...]:
        """Query each region once; raises nothing."""
        ends = self._clock() + PATIENCE
        done: list[Listing[str, InstanceEvent]] = []
        for region in scopes:
            if self._clock() < ends:
                done.append(self._ask(region))
            else:
                # A node can name a region that does not exist, and each of those takes its time.
                problem = f"EC2 took more than {PATIENCE:g} s for the regions before"
                done.append(Listing(region, problem=problem, asked=False))
        return tuple(done)

    def _ask(self, region: str) -> Listing[str, InstanceEvent]:
        try:
            client = self._ec2(region)
            # The extra may be missing.
            from botocore.exceptions import ClientError, ParamValidationError

            try:
                statuses = self._statuses(client, managed=region not in self._without_managed)
            except (ClientError, ParamValidationError) as error:
                # EC2, or an older boto3, may not know a parameter; only IncludeManagedResources is new.
                unknown = isinstance(error, ParamValidationError)
                unknown = unknown or error.response.get("Error", {}).get("Code") in _UNKNOWN
                if region in self._without_managed or not unknown:
                    raise
                log.warning("EC2 in %s does not know IncludeManagedResources; it is asked without", region)
                statuses = self._statuses(client, managed=False)
                self._without_managed.add(region)
            return aws.listing(region, statuses)
        except CloudError as error:
            return _failed(region, error)
        except Exception as error:  # noqa: BLE001 - one region harms itself only
            # A node names its region, so what that or its answer breaks harms this region only.
            if not _is_botos(error):
                internal(f"EC2 has no answer in {region}", error)
            return _failed(region, error)

    @staticmethod
    def _statuses(client: Any, *, managed: bool) -> list[Any]:
        """Return InstanceStatuses of all pages; `managed` includes nodes of EKS Auto Mode."""
        pages = client.get_paginator("describe_instance_status").paginate(
            Filters=[{"Name": "event.code", "Values": sorted(aws.CODES)}],
            # An instance that AWS has stopped is in the middle of its event.
            IncludeAllInstances=True,
            # An account can hide them by default.
            **({"IncludeManagedResources": True} if managed else {}),
            PaginationConfig={"PageSize": PAGE},
        )
        return [status for page in pages for status in value_of(page, "InstanceStatuses") or ()]


def _is_botos(error: Exception) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    return isinstance(error, BotoCoreError | ClientError)


def _failed(region: str, error: Exception) -> Listing[str, InstanceEvent]:
    words = " ".join(str(error).split())[:_LONGEST_PROBLEM]
    log.warning("EC2 can't be asked: region=%s error=%s", region, words)
    return Listing(region, problem=f"EC2 in {region} can't be asked: {words}")
