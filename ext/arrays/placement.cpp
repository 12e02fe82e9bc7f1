#include "arrays/placement.h"

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
    if (PyTuple_CheckExact(each_.get()) && size_t(PyTuple_GET_SIZE(each_.get())) == outputs) return true;
    PyErr_Format(PyExc_TypeError, "hook 'placement' returned %R; expected a tuple of %zu places", each_.get(), outputs);
    return false;
}

}  // namespace pb
