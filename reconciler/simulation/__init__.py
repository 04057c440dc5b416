"""A simulated cluster and platform behind the same ports, on a virtual clock; every run is the same."""
