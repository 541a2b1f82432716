"""The handlers of the API, one file per noun; each has its routes in `ROUTES`."""
