"""AWS: scheduled events (EC2)."""
