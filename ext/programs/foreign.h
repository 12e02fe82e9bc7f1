// Foreign functions: C functions that users registered (pullback.ffi), called from programs by pointer, without Python.
//
// The binary interface is XLA's (include/xla/ffi/api/c_api.h), so that what was compiled for JAX runs unchanged. A
// ForeignFunction is one place of a program that calls one: its handlers, the types of its arguments and results, and
// its attributes. It is made in Python, and a program's host calls may be such objects in place of Python functions.
#pragma once
#include <Python.h>

#include <string>

namespace pb {

bool is_foreign(PyObject* object);

// Calls the handlers on buffers, arguments first. Returns what went wrong, or nothing. Needs no GIL.
std::string call_foreign(PyObject* foreign, void** buffers, int device);

// Sets JaxRuntimeError. GIL held.
void raise_foreign(const std::string& message);

bool add_foreign(PyObject* module);

}  // namespace pb
