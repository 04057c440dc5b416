"""Random histories through whole passes and the drainer, on the simulation; every law is checked."""
