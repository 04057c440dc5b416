"""What people order: holds, deferrals and approvals."""

COMMANDS = {"approve": "Approve the drains for the events that are reported now, or withdraw the approval."}
