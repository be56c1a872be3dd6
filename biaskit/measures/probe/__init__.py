"""How probable each gender group is, over the full product of jobs and templates."""
