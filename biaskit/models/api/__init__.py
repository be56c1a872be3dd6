"""Models behind an OpenAI-compatible server: what it can do, how it is asked, what it costs."""
