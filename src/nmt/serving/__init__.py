"""The HTTP server: queue, processes of models, routes, limits, and the page."""
