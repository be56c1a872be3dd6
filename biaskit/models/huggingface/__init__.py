"""Local models on transformers: the only place that imports torch and transformers."""
