// The array type: an immutable, boxed, n-dimensional array in host memory.
//
// Data is C-contiguous and aligned to 64 bytes. It belongs either to the array alone (`owner` is null: freed with the
// array) or to `owner`, a Python object that keeps it alive and may be shared with views and other arrays. An array of
// size 0 has a valid, aligned data pointer that must not be written to or read from; one of size 1 is like any other.
//
// The GIL must be held for every function here. None blocks.
#pragma once
#include "arrays/aval.h"

namespace pb {

struct Array {
    PyObject_HEAD AvalInfo* info;  // counted as user; never null in a live array
    void* data;                    // null once deleted and freed
    PyObject* owner;               // strong or null, see above
    PyObject* view;    // strong or null: the read-only NumPy view, made when first asked for; its base is `owner`
    PyObject* device;  // strong or null: the device that the array is committed to, or the sharding over several
    PyObject* home;    // lives for ever, or null: the device that it lies on uncommitted, if that is not the first
    PyObject* weakrefs;
    uint32_t pins;  // programs that are reading the data without the GIL; it is not freed while there are any
    uint32_t deleted : 1;
    uint32_t made : 31;  // traces_begun (trace_state.h) when it was made
};

extern PyTypeObject* array_type;
inline bool is_array(PyObject* object) { return Py_TYPE(object) == array_type; }
inline Array* as_array(PyObject* object) { return reinterpret_cast<Array*>(object); }

// A new array with memory of its own and undefined contents, to be written to by the caller before anyone else sees it.
// Takes over one use of `info`, also on failure. Null with OutOfMemoryError set if there is no memory.
Array* new_array(AvalInfo* info);

// A new array over memory that `owner` (a new reference, taken over also on failure) keeps alive. Takes over one use of
// `info`.
Array* new_array_over(AvalInfo* info, void* data, PyObject* owner);

// A new array of `info` (one use taken over) that shares the memory of `source`, which must have as many bytes.
Array* new_array_sharing(AvalInfo* info, Array* source);

// A new array of `info` (one use taken over) over a part of the memory of `source`, which begins at `data`, aligned.
Array* new_array_part(AvalInfo* info, Array* source, void* data);

// A new array with the contents of any NumPy array, cast to the dtype of `info`; the shapes must agree. Takes over one
// use of `info`. The memory is shared if `share` says so and its layout allows it, else copied.
Array* new_array_from_numpy(AvalInfo* info, PyArrayObject* source, bool share);

// Copies and converts one NumPy array into another of its shape, by some rows at a time, between which Ctrl-C is heard.
// False with an error set.
bool copy_in_parts(PyArrayObject* target, PyArrayObject* source);

// Whether a place is a single device, not a sharding.
bool is_device(PyObject* place);
// Whether the array says that it is spread over devices (its `device` is a sharding).
inline bool is_spread(const Array* a) { return a->device && !is_device(a->device); }

// Whether the memory is the array's alone, so that a program may overwrite it when the array is donated.
inline bool is_exclusive(const Array* a) { return !a->owner && !a->pins && !a->deleted; }

// Sets OutOfMemoryError, which is a JaxRuntimeError and a MemoryError, with a text as of PyErr_Format.
void raise_no_memory(const char* format, ...);

// Raises RuntimeError and returns false if the array has been deleted.
bool check_not_deleted(const Array* a);

// Keeps the data of an array alive until `unpin`, even if it is deleted meanwhile.
inline void pin(Array* a) { ++a->pins; }
void unpin(Array* a);

// Drops the data, at once or with the last pin; views and other arrays that share it stay valid.
void delete_data(Array* a);

// The read-only NumPy view (borrowed), or null with an error set.
PyObject* numpy_view(Array* a);

// Makes the type and puts it and its functions into the module. False on failure.
bool add_array_type(PyObject* module);

}  // namespace pb
