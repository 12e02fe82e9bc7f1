// Includes Python and the NumPy C API the same way in every file: one import (in module.cpp), shared by all of them.
#pragma once
#include <Python.h>
#ifndef PULLBACK_IMPORT_NUMPY
#define NO_IMPORT_ARRAY
#endif
#define PY_ARRAY_UNIQUE_SYMBOL pullback_numpy_api
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
