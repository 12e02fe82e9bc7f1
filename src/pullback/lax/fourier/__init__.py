"""Fourier transforms. (`lax.fft` is the function, so the folder has another name.)"""
