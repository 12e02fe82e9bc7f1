// Reading x[index], and x.at[index].set, in C: integers, slices, None and Ellipsis, alone or in a tuple, and one integer array.
//
// The rules are those of numpy/_indexing.py: a negative index counts from the end, then the nearest element is taken.
// Results are copies, but for contiguous parts that are large both by themselves and as a part of the array.
//
// Why: a copy of 4 KB is quicker than the object that shares it, and a small part must not keep a large array alive.
#pragma once
#include "arrays/array.h"

namespace pb {

constexpr npy_intp kSharedBytes = 1 << 12;  // larger results that are parts or other shapes of an array share its memory

// A new reference; null with an error set; or null without one if the index is not one of these, or the array has no
// elements along an indexed axis, so that Python must see to it.
PyObject* get_item(Array* a, PyObject* index);

// The same of a part that lies inside, and of no other; an integer array is none.
PyObject* get_part(Array* a, PyObject* index);

// The array with a part that lies inside replaced by an array of the same dtype, broadcast, or by a Python number that
// the dtype has. A new reference; null with an error set; or null without one where Python must see to it.
PyObject* with_part(Array* a, PyObject* index, PyObject* value);

constexpr npy_intp kWrittenBytes = 1 << 20;  // copies of more are compiled code's, on all threads

// The array with its axes in reverse order; null without an error if it is better done elsewhere.
PyObject* reversed(Array* a);

// The list of a[0], a[1], ...; null with an error set. `a` has a dimension.
PyObject* rows(Array* a);

}  // namespace pb
