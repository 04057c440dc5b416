"""ESX hosts: their labels, and vCenter."""
