"""Tables of text: the neutral document, what each measurement puts into it, and its renderers."""
