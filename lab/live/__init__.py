"""Figures that the reader turns: the scheduler, the simulator and the stream model behind sliders in a page.

A figure is knobs, and what becomes of their values: a picture, a text, and the numbers behind both. Standard library
only: the build of the book and the reader's browser run the same code, and nothing else draws.
"""
