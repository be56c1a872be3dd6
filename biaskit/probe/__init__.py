"""Engine 1: the probability that a model names each gender group, over the full product of jobs and templates."""
