"""The pure core: decides everything about a message that can be decided without touching the world.

Nothing in here does I/O, reads a clock, draws a random number or looks at the environment. Import from the
modules: :mod:`messaging_core.message`, :mod:`~messaging_core.flow`, :mod:`~messaging_core.errors`, ...
"""
