"""Labels by a person: which texts are read, the sheet, and what the labels correct."""
