"""Request and reply values, one module for each kind of edge. A channel describes; a shell performs."""
