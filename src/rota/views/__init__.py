"""What is shown, shaped once: commands print these shapes and the HTTP API returns them.

One file per noun. A function here takes a `View` and returns shapes; it writes nothing. Names are those of the API.
"""
