"""The shapes that users see, defined once: commands print them, and the HTTP API returns them.

One file per noun. A function here takes a `View` and returns shapes; it writes nothing. Names are those of the API.
"""
