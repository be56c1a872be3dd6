"""Which texts are sampled: series of one prompt each, in batches (Algorithm 5), and their rows."""
