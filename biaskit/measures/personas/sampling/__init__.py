"""Which texts are drawn: the resolved design, rounds of draws (Algorithm 5), and the texts on disk."""
