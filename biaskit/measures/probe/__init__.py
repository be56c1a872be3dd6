"""Engine 1: how probable each gender group is, over the full product of jobs and templates."""
