"""Reports of stored runs: findings in sentences, figures, printed tables, and the page."""
