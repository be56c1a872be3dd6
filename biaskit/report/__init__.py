"""One neutral document of titled tables and notes, and its renderers."""
