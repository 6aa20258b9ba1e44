"""From Markdown to each platform's markup, measured and cut to what the platform takes.

:mod:`tree` reads a text into a small flat tree; each dialect is one file from tree to markup; :mod:`split` renders
a tree whole, in parts, or cut short. Nothing here knows a channel, and only :mod:`tree` knows the Markdown parser.
"""
