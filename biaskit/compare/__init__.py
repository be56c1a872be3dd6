"""Hold models and engines against each other, from stored tables alone (methods/comparisons#both-engines)."""
