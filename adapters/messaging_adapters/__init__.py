"""The shells around :mod:`messaging_core`: one kind of edge each, one effect in a few lines, no decisions."""
