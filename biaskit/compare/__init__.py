"""Hold models and measurements against each other, by stored tables (methods/comparisons#both-kinds)."""
