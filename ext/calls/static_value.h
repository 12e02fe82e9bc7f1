// Static arguments: when two values mean the same program.
#pragma once
#include <Python.h>

#include "ref.h"

namespace pb {

// Whether a == b and both are of one type, the items of tuples too, and no zeros of different sign are among them, for
// which == is not enough: 1, 0, or -1 with an error set.
int same_static(PyObject* a, PyObject* b);

// An object for keys of Python's dicts: forms are == where the values are `same_static`. Null with an error set.
Ref static_form(PyObject* value);

// The same as a function of the module.
bool add_static_form(PyObject* module);

}  // namespace pb
