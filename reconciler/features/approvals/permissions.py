"""The annotation by which a person approves the drain of a node."""

from __future__ import annotations

from reconciler.model.permission_kinds import PermissionKind

APPROVED = PermissionKind(
    name="approved", command="approve", noun="approval", done="approved", for_profiles="workflows"
)

PERMISSIONS = (APPROVED,)
