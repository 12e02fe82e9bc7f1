#include "arrays/placement.h"

#include <cstring>

#include "hooks.h"
#include "calls/trace_state.h"

namespace pb {

bool Placement::find(Executable* executable, const Arguments& arguments, size_t outputs) {
    PyObject* first = nullptr;
    bool alike = true;
    for (size_t i = 0; i < arguments.count; ++i) {
        Array* a = arguments.arrays[i];
        if (!a || !a->device) continue;
        if (!first) first = a->device;
        alike = alike && a->device == first;
    }
    bool on_one = alike && (!first || is_device(first));
    if (on_one && !executable->places && !trace_state.has_mesh) {
        same_ = Ref::borrow(first);
        return true;
    }
    if (!hooks.placement) return hook_missing("placement");
    Ref devices = Ref::steal(PyTuple_New(Py_ssize_t(arguments.count)));
    if (!devices) return false;
    for (size_t i = 0; i < arguments.count; ++i) {
        Array* a = arguments.arrays[i];
        PyTuple_SET_ITEM(devices.get(), Py_ssize_t(i), Py_NewRef(a && a->device ? a->device : Py_None));
    }
    PyObject* placing = executable->placing ? executable->placing : Py_None;
    Ref hook = Ref::borrow(hooks.placement);
    each_ = Ref::steal(PyObject_CallFunctionObjArgs(hook.get(), placing, devices.get(), executable->name,
                                                    executable->out_avals, nullptr));
    if (!each_) return false;
    size_t count = PyTuple_CheckExact(each_.get()) ? size_t(PyTuple_GET_SIZE(each_.get())) : 0;
    if (PyTuple_CheckExact(each_.get()) && count == outputs) return true;
    if (count == outputs + 1) return take_arguments(executable, arguments);
    PyErr_Format(PyExc_TypeError, "hook 'placement' returned %R; expected a tuple of %zu places", each_.get(), outputs);
    return false;
}

bool Placement::take_arguments(Executable* executable, const Arguments& arguments) {
    given_ = Ref::steal(PyTuple_New(Py_ssize_t(arguments.count)));
    if (!given_) return false;
    for (size_t i = 0; i < arguments.count; ++i) {
        Array* a = arguments.arrays[i];
        if (a) {
            Py_INCREF(a);
        } else {
            AvalInfo* info = retain_info(executable->program->in[i]);
            a = new_array(info);
            if (!a) return false;
            if (info->nbytes) memcpy(a->data, arguments.data[i], size_t(info->nbytes));
        }
        PyTuple_SET_ITEM(given_.get(), Py_ssize_t(i), reinterpret_cast<PyObject*>(a));
    }
    return true;
}

bool Placement::give_terms(PyObject** outputs, size_t count) const {
    Ref results = Ref::steal(PyTuple_New(Py_ssize_t(count)));
    if (!results) return false;
    for (size_t o = 0; o < count; ++o) PyTuple_SET_ITEM(results.get(), Py_ssize_t(o), Py_NewRef(outputs[o]));
    PyObject* function = PyTuple_GET_ITEM(each_.get(), Py_ssize_t(count));
    return bool(Ref::steal(PyObject_CallFunctionObjArgs(function, given_.get(), results.get(), nullptr)));
}

}  // namespace pb
