"""What people order: holds, deferrals and approvals."""
