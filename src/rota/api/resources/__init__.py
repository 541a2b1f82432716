"""The handlers of the API, one file per noun. Each handler declares its route with `@route`."""
