// Exchange of arrays with other libraries by DLPack, without copies. Layouts follow the public DLPack specification
// (1.1).
//
// An exported capsule keeps the memory of the array alive until its consumer is done, from whatever thread it says so.
// An imported tensor is shared if it lies in host memory, C-contiguous and aligned to 64 bytes, and is copied
// otherwise.
#pragma once
#include <Python.h>

namespace pb {

// Array.__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None).
PyObject* array_to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
// Array.__dlpack_device__(): (1, 0), the host.
PyObject* array_dlpack_device(PyObject* self, PyObject*);
// from_dlpack(capsule, copy=None): an Array from a capsule; its aval is made by the hook `make_aval`. Raises
// BufferError for tensors that cannot be had (other devices, dtypes without a counterpart), TypeError for what is not
// an unused capsule.
PyObject* from_dlpack(PyObject* module, PyObject* args, PyObject* kwargs);

bool add_dlpack(PyObject* module);

}  // namespace pb
