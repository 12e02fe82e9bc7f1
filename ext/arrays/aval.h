// What C needs to know of an aval, read from its Python attributes once.
//
// An aval is a Python object with the attributes shape (tuple of int), dtype (numpy.dtype) and weak_type (bool); avals
// are interned, so that equal avals are one object. `aval_info` keeps a table from the object to its AvalInfo. The GIL
// must be held for everything here.
#pragma once
#include <cstdint>

#include "numpy_api.h"

namespace pb {

struct AvalInfo {
    PyObject* aval;        // strong
    PyObject* shape;       // strong; tuple of int
    PyArray_Descr* descr;  // strong; native byte order, holds no objects
    int64_t users;         // arrays, executables and the like that point here
    int64_t size;          // number of elements
    int64_t nbytes;
    int ndim;
    bool weak;
    npy_intp dims[NPY_MAXDIMS];
};

// The info of `aval`, with one more user; to be given back by `release_info`. Null with TypeError set if it is no aval
// of an array in memory (extended dtype, symbolic dimension), or OverflowError if it is too large to address.
AvalInfo* aval_info(PyObject* aval);
// The info, with one more user, of the aval of this element type and shape; known ones are found without Python. Null
// with an error set.
AvalInfo* info_of_shape(PyArray_Descr* descr, bool weak, int ndim, const npy_intp* dims);
// Forgets avals that nobody uses; they are kept, up to a number, as they are likely to come back. Runs Python code.
void sweep_avals();
inline AvalInfo* retain_info(AvalInfo* info) {
    ++info->users;
    return info;
}
inline void release_info(AvalInfo* info) { --info->users; }

}  // namespace pb
