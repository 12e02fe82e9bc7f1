// What Python hands to the extension, which imports no Python module itself.
//
// Each hook is a strong reference or null. Null means "not set": using it raises RuntimeError that names it.
// The GIL must be held for everything here.
#pragma once
#include <Python.h>

namespace pb {

struct Hooks {
    PyObject* make_aval = nullptr;       // (shape: tuple, dtype, weak_type: bool) -> the interned ShapedArray
    PyObject* repr = nullptr;            // (ndarray, weak_type) -> str, the repr of an array
    PyObject* reconstruct = nullptr;     // (ndarray, weak_type) -> Array; must pickle by name
    PyObject* first_device = nullptr;    // () -> the device of arrays that are not committed to one, and were made there
    PyObject* sharding = nullptr;        // (Array) -> its sharding
    PyObject* assemble = nullptr;        // (aval, sharding, arrays, committed) -> Array; what its class does when called
    PyObject* leaf = nullptr;            // (object) -> (key, Array) or None; see call_cache.h
    PyObject* asarray = nullptr;         // (object) -> Array, for leaves that C does not convert itself
    PyObject* tracer = nullptr;          // the class of tracers
    PyObject* device = nullptr;          // the class of devices
    PyObject* placement = nullptr;       // (placing, devices, name, out_avals) -> places of results; see placement.h
};

extern Hooks hooks;

// Whether an object is a tracer; false before the class of tracers is known.
inline bool is_tracer(PyObject* object) {
    return hooks.tracer && PyType_Check(hooks.tracer) &&
           PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(hooks.tracer));
}

// set_hooks(**hooks): replaces the hooks that are named; None unsets one. Returns those that they replace. TypeError
// for a name that does not exist.
PyObject* set_hooks(PyObject* module, PyObject* args, PyObject* kwargs);

// Raises RuntimeError("hook 'name' is not set"); returns null.
PyObject* hook_missing(const char* name);

}  // namespace pb
