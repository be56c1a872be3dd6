"""Tables of text: the neutral document, what each engine puts into it, and its renderers."""
