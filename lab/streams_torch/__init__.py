"""Chapter 3's lab where it needs PyTorch: programs on threads and on CUDA, and PyTorch code read as a program."""
