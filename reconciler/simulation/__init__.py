"""A cluster and its platform without either: the same ports, a virtual clock, the same every time."""
