"""`pods` of the settings: what they need of the cluster, and what contradicts itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.pods.settings import PODS
from reconciler.model.errors import SettingsError
from reconciler.settings.grants import grants_of
from tests.support.builders import settings


def test_moved_pods_are_kept_for_a_week_and_nothing_is_published_by_default() -> None:
    found = PODS.of(settings())

    assert (found.keep, found.publish) == (timedelta(days=7), False)
    assert grants_of(settings()).folders == ()


def test_to_publish_needs_permissions_of_its_own() -> None:
    assert grants_of(settings("pods: {publish: true}")).folders == ("k8s/pods",)


def test_what_is_published_has_to_be_kept() -> None:
    with pytest.raises(SettingsError, match=r"pods\.publish: needs what `pods\.keep` keeps, and that is 0s"):
        settings("pods: {publish: true, keep: 0s}")
