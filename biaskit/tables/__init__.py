"""The public tables: what each holds, the one writer and reader, and how rows are picked."""
