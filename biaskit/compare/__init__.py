"""Hold models and engines against each other, from the stored tables of their runs; nothing is asked anew.

See methods/comparisons#both-engines.
"""
