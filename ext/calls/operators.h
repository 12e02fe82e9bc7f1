// The operators of Array. Indexing and iteration are done here where the thread does not trace (indexing.h); otherwise each
// slot of the type calls a function from a table that `set_operators` fills.
//
// A function gets the operands in the order of its name ('add': array + other; 'radd' gets (array, other) for other +
// array) and may return NotImplemented. An operator that has not been set gives NotImplemented, so Python raises its
// usual TypeError; 'getitem', 'iter' and 'contains', which cannot do that, raise TypeError.
#pragma once
#include <Python.h>

#include <vector>

namespace pb {

// set_operators(dict[str, callable | None]): returns what was set before for these names. TypeError for an unknown name
// or a value that cannot be called.
PyObject* set_operators(PyObject* module, PyObject* table);

// part_of(array, index[, value]): get_part, or with a value with_part, of indexing.h; None while tracing, and for what
// those do not know.
PyObject* part_of(PyObject* module, PyObject* const* args, Py_ssize_t count);

// The attribute T: an array with its axes in reverse order; by the function 'transpose' of the table while tracing.
PyObject* reversed_axes(PyObject* array, void*);

// Appends the slots to those of the type.
void append_operators(std::vector<PyType_Slot>& slots);

}  // namespace pb
