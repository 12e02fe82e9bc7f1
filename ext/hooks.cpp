#include "hooks.h"

#include <cstring>

#include "ref.h"

namespace pb {

Hooks hooks;

namespace {
struct Slot {
    const char* name;
    PyObject** place;
};
const Slot slots[] = {
    {"make_aval", &hooks.make_aval},     {"repr", &hooks.repr},
    {"reconstruct", &hooks.reconstruct}, {"first_device", &hooks.first_device},
    {"sharding", &hooks.sharding},       {"leaf", &hooks.leaf},
    {"asarray", &hooks.asarray},         {"tracer", &hooks.tracer},
    {"device", &hooks.device},           {"placement", &hooks.placement},
    {"assemble", &hooks.assemble},
};
}  // namespace

PyObject* set_hooks(PyObject*, PyObject* args, PyObject* kwargs) {
    if (PyTuple_GET_SIZE(args) != 0) {
        PyErr_SetString(PyExc_TypeError, "set_hooks: takes keyword arguments only");
        return nullptr;
    }
    Ref before = Ref::steal(PyDict_New());
    if (!before) return nullptr;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
        const char* name = PyUnicode_AsUTF8(key);
        if (!name) return nullptr;
        const Slot* found = nullptr;
        for (const Slot& slot : slots)
            if (!strcmp(slot.name, name)) found = &slot;
        if (!found) {
            PyErr_Format(PyExc_TypeError, "set_hooks: there is no hook '%s'", name);
            return nullptr;
        }
        if (value != Py_None && !PyCallable_Check(value)) {
            PyErr_Format(PyExc_TypeError, "set_hooks: hook '%s' is %R; expected a callable or None", name, value);
            return nullptr;
        }
        PyObject* old = *found->place;
        if (PyDict_SetItem(before.get(), key, old ? old : Py_None) < 0) return nullptr;
        *found->place = value == Py_None ? nullptr : Py_NewRef(value);
        Py_XDECREF(old);
    }
    return before.release();
}

PyObject* hook_missing(const char* name) {
    PyErr_Format(PyExc_RuntimeError, "pullback._ext: hook '%s' is not set", name);
    return nullptr;
}

}  // namespace pb
