"""Whatever can answer: local transformers models, a scripted double; later, API servers."""
