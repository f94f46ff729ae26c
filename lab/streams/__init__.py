"""Chapter 3's lab: programs on several streams, and what goes wrong in them.

Standard library only, so that it also runs in a browser.
"""
