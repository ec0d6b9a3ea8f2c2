"""The pages in a browser: Chromium, their addresses, large runs, what is measured of them."""
