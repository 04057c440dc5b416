"""What commands share: clock, signals, logs, environment, health."""
