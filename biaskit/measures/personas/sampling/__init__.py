"""Which texts are drawn: the resolved design, batches of samples (Algorithm 5), and the texts on disk."""
