"""Foreign text: what may be shown of it, wherever it is shown."""
