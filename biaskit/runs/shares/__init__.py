"""From a stored row to mass, coverage and share of each group, by its estimator."""
