"""Words as vectors: trained on the texts of a run, or read from a pretrained file."""
