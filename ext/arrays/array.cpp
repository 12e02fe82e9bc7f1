#include "arrays/array.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>

#include "arrays/allocator.h"
#include "hooks.h"
#include "calls/operators.h"
#include "ref.h"
#include "calls/trace_state.h"

namespace pb {

PyTypeObject* array_type = nullptr;

namespace {

// Memory that an array has lent out: keeps one block of the allocator alive.
struct Storage {
    PyObject_HEAD void* data;
    size_t nbytes;
};

void storage_dealloc(PyObject* self) {
    auto* storage = reinterpret_cast<Storage*>(self);
    deallocate(storage->data, storage->nbytes);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyTypeObject* storage_type = nullptr;

// Moves the memory of an array into an object that can be shared. Returns the owner (borrowed), or null.
PyObject* share_memory(Array* a) {
    if (a->owner) return a->owner;
    auto* storage = PyObject_New(Storage, storage_type);
    if (!storage) return nullptr;
    storage->data = a->data;
    storage->nbytes = size_t(a->info->nbytes);
    return a->owner = reinterpret_cast<PyObject*>(storage);
}

void free_data(Array* a) {
    if (a->owner) {
        Py_CLEAR(a->view);
        Py_CLEAR(a->owner);
    } else if (a->data) {
        deallocate(a->data, size_t(a->info->nbytes));
    }
    a->data = nullptr;
}

Array* blank_array(AvalInfo* info, void* data, PyObject* owner) {
    auto* a = PyObject_New(Array, array_type);
    if (!a) return nullptr;
    a->info = info;
    a->data = data;
    a->owner = owner;
    a->view = a->device = a->weakrefs = nullptr;
    a->home = home_of_new_arrays();
    a->pins = 0;
    a->deleted = false;
    a->made = traces_begun;
    return a;
}

void array_dealloc(PyObject* self) {
    Array* a = as_array(self);
    if (a->weakrefs) PyObject_ClearWeakRefs(self);
    free_data(a);
    Py_CLEAR(a->device);
    release_info(a->info);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

// NumPy's view of memory that is still to be written, for copies and casts by NumPy. Does not own the memory.
PyObject* writable_view(Array* a) {
    Py_INCREF(a->info->descr);
    return PyArray_NewFromDescr(&PyArray_Type, a->info->descr, a->info->ndim, a->info->dims, nullptr, a->data,
                                NPY_ARRAY_CARRAY, nullptr);
}

}  // namespace

Array* new_array(AvalInfo* info) {
    void* data = allocate(size_t(info->nbytes));
    if (!data) {
        raise_no_memory("RESOURCE_EXHAUSTED: Out of memory allocating %lld bytes for an array of shape %R and dtype %S.",
                        (long long)info->nbytes, info->shape, info->descr);
        release_info(info);
        return nullptr;
    }
    Array* a = blank_array(info, data, nullptr);
    if (!a) {
        deallocate(data, size_t(info->nbytes));
        release_info(info);
    }
    return a;
}

Array* new_array_over(AvalInfo* info, void* data, PyObject* owner) {
    Array* a = blank_array(info, data, owner);
    if (!a) {
        Py_DECREF(owner);
        release_info(info);
    }
    return a;
}

Array* new_array_sharing(AvalInfo* info, Array* source) { return new_array_part(info, source, source->data); }

Array* new_array_part(AvalInfo* info, Array* source, void* data) {
    PyObject* owner = check_not_deleted(source) ? share_memory(source) : nullptr;
    if (!owner) {
        release_info(info);
        return nullptr;
    }
    Array* a = new_array_over(info, data, Py_NewRef(owner));
    bool alike = info->ndim == source->info->ndim && PyArray_CompareLists(info->dims, source->info->dims, info->ndim);
    if (a && (alike || !is_spread(source))) a->device = Py_XNewRef(source->device);
    return a;
}

bool is_device(PyObject* place) { return reinterpret_cast<PyObject*>(Py_TYPE(place)) == hooks.device; }

bool copy_in_parts(PyArrayObject* target, PyArrayObject* source) {
    constexpr npy_intp kPart = 1 << 22;  // elements
    const npy_intp size = PyArray_SIZE(target);
    if (size <= kPart) return PyArray_CopyInto(target, source) == 0;
    auto *to = reinterpret_cast<PyObject*>(target), *from = reinterpret_cast<PyObject*>(source);
    const npy_intp n = PyArray_DIM(target, 0), rows = std::max<npy_intp>(1, kPart / (size / n));
    for (npy_intp i = 0; i < n; i += rows) {
        if (PyErr_CheckSignals() < 0) return false;
        const bool is_long = size / n > kPart;
        const npy_intp end = std::min(i + rows, n);
        Ref part = Ref::steal(is_long ? PySequence_GetItem(to, i) : PySequence_GetSlice(to, i, end));
        Ref given = Ref::steal(is_long ? PySequence_GetItem(from, i) : PySequence_GetSlice(from, i, end));
        if (!part || !given ||
            !copy_in_parts(reinterpret_cast<PyArrayObject*>(part.get()), reinterpret_cast<PyArrayObject*>(given.get())))
            return false;
    }
    return true;
}

Array* new_array_from_numpy(AvalInfo* info, PyArrayObject* source, bool share) {
    if (PyArray_NDIM(source) != info->ndim || !PyArray_CompareLists(PyArray_DIMS(source), info->dims, info->ndim)) {
        Ref shape = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(source), "shape"));
        if (shape)
            PyErr_Format(PyExc_ValueError, "got an ndarray of shape %R for an aval of shape %R", shape.get(),
                         info->shape);
        release_info(info);
        return nullptr;
    }
    bool same = PyArray_DESCR(source) == info->descr || PyArray_EquivTypes(PyArray_DESCR(source), info->descr);
    bool contiguous = same && PyArray_IS_C_CONTIGUOUS(source);
    if (share && contiguous && is_aligned(PyArray_DATA(source)))
        return new_array_over(info, PyArray_DATA(source), Py_NewRef(reinterpret_cast<PyObject*>(source)));
    Array* a = new_array(info);
    if (!a || info->nbytes == 0) return a;
    constexpr int64_t kAtOnce = 1 << 24;  // bytes
    if (contiguous && info->nbytes <= kAtOnce) {
        memcpy(a->data, PyArray_DATA(source), size_t(info->nbytes));
        return a;
    }
    Ref target = Ref::steal(writable_view(a));
    if (!target || !copy_in_parts(reinterpret_cast<PyArrayObject*>(target.get()), source)) {
        Py_DECREF(a);
        return nullptr;
    }
    return a;
}

void raise_no_memory(const char* format, ...) {
    Ref module = Ref::steal(PyImport_ImportModule("pullback.util.errors"));
    Ref type = module ? Ref::steal(PyObject_GetAttrString(module.get(), "OutOfMemoryError")) : Ref();
    if (!type) PyErr_Clear();
    va_list values;
    va_start(values, format);
    PyErr_FormatV(type ? type.get() : PyExc_MemoryError, format, values);
    va_end(values);
}

bool check_not_deleted(const Array* a) {
    if (!a->deleted) return true;
    Ref text = Ref::steal(PyObject_CallMethod(a->info->aval, "str_short", "O", Py_False));
    if (!text) {
        PyErr_Clear();
        text = Ref::steal(PyObject_Str(a->info->shape));
    }
    if (text)
        PyErr_Format(PyExc_RuntimeError,
                     "Array has been deleted: %U was donated to a jitted function (donate_argnums), or its delete() was "
                     "called", text.get());
    return false;
}

void unpin(Array* a) {
    if (--a->pins == 0 && a->deleted) free_data(a);
}

void delete_data(Array* a) {
    a->deleted = true;
    if (a->pins == 0) free_data(a);
}

PyObject* numpy_view(Array* a) {
    if (a->view) return a->view;
    if (!check_not_deleted(a)) return nullptr;
    PyObject* owner = share_memory(a);
    if (!owner) return nullptr;
    Py_INCREF(a->info->descr);
    Ref view = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, a->info->descr, a->info->ndim, a->info->dims, nullptr,
                                               a->data, NPY_ARRAY_CARRAY_RO, nullptr));
    if (!view || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view.get()), Py_NewRef(owner)) < 0)
        return nullptr;
    return a->view = view.release();
}

// ---- functions of the module ----------------------------------------------------------------------------------------

namespace {

PyObject* from_numpy(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"x", "aval", "device", "copy", nullptr};
    PyObject *source, *aval, *device = Py_None;
    int copy = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|Op:from_numpy", const_cast<char**>(names), &PyArray_Type,
                                     &source, &aval, &device, &copy))
        return nullptr;
    AvalInfo* info = aval_info(aval);
    if (!info) return nullptr;
    Array* a = new_array_from_numpy(info, reinterpret_cast<PyArrayObject*>(source), !copy);
    if (a && device != Py_None) a->device = Py_NewRef(device);
    return reinterpret_cast<PyObject*>(a);
}

PyObject* copy_of(PyObject*, PyObject* const* args, Py_ssize_t n) {
    if (n != 4 || !PyArray_Check(args[0]) || !PyArray_DescrCheck(args[1]) || !PyBool_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "copy_of: expected an ndarray, a dtype, a bool, and a device or None");
        return nullptr;
    }
    auto* source = reinterpret_cast<PyArrayObject*>(args[0]);
    AvalInfo* info = info_of_shape(reinterpret_cast<PyArray_Descr*>(args[1]), args[2] == Py_True, PyArray_NDIM(source),
                                   PyArray_DIMS(source));
    Array* a = info ? new_array_from_numpy(info, source, false) : nullptr;
    if (a && args[3] != Py_None) a->device = Py_NewRef(args[3]);
    return reinterpret_cast<PyObject*>(a);
}

PyObject* zeros(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"aval", "device", nullptr};
    PyObject *aval, *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:zeros", const_cast<char**>(names), &aval, &device))
        return nullptr;
    AvalInfo* info = aval_info(aval);
    if (!info) return nullptr;
    Array* a = new_array(info);
    if (!a) return nullptr;
    if (info->nbytes) memset(a->data, 0, size_t(info->nbytes));
    if (device != Py_None) a->device = Py_NewRef(device);
    return reinterpret_cast<PyObject*>(a);
}

PyObject* writable(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"aval", "device", nullptr};
    PyObject *aval, *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:writable", const_cast<char**>(names), &aval, &device))
        return nullptr;
    AvalInfo* info = aval_info(aval);
    if (!info) return nullptr;
    Ref a = Ref::steal(reinterpret_cast<PyObject*>(new_array(info)));
    if (!a) return nullptr;
    if (device != Py_None) as_array(a.get())->device = Py_NewRef(device);
    PyObject* owner = share_memory(as_array(a.get()));
    Ref view = owner ? Ref::steal(writable_view(as_array(a.get()))) : Ref();
    if (!view || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view.get()), Py_NewRef(owner)) < 0)
        return nullptr;
    return PyTuple_Pack(2, a.get(), view.get());
}

PyObject* with_aval(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"x", "aval", "device", nullptr};
    PyObject *source, *aval, *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:with_aval", const_cast<char**>(names), array_type, &source,
                                     &aval, &device))
        return nullptr;
    AvalInfo* info = aval_info(aval);
    if (!info) return nullptr;
    if (info->nbytes != as_array(source)->info->nbytes) {
        PyErr_Format(PyExc_ValueError, "with_aval: x has %lld bytes, but the new aval %R needs %lld",
                     (long long)as_array(source)->info->nbytes, aval, (long long)info->nbytes);
        release_info(info);
        return nullptr;
    }
    Array* a = new_array_sharing(info, as_array(source));
    if (!a) return nullptr;
    Py_XSETREF(a->device, device == Py_None ? nullptr : Py_NewRef(device));
    return reinterpret_cast<PyObject*>(a);
}

// The places of arguments, None for those that are not committed; None if none is and no mesh is in force.
PyObject* places_of(PyObject*, PyObject* args) {
    if (!PyTuple_CheckExact(args)) {
        PyErr_Format(PyExc_TypeError, "places_of: expected a tuple, got %s", Py_TYPE(args)->tp_name);
        return nullptr;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    auto place = [&](Py_ssize_t i) {
        PyObject* x = PyTuple_GET_ITEM(args, i);
        return is_array(x) ? as_array(x)->device : nullptr;
    };
    bool any = trace_state.has_mesh;
    for (Py_ssize_t i = 0; i < n && !any; ++i) any = place(i);
    if (!any) Py_RETURN_NONE;
    PyObject* places = PyTuple_New(n);
    for (Py_ssize_t i = 0; places && i < n; ++i)
        PyTuple_SET_ITEM(places, i, Py_NewRef(place(i) ? place(i) : Py_None));
    return places;
}

PyObject* set_array_attribute(PyObject*, PyObject* args) {
    PyObject *name, *value;
    int only_shown = 0;
    if (!PyArg_ParseTuple(args, "UO|p:set_array_attribute", &name, &value, &only_shown)) return nullptr;
    if (only_shown) {
        if (PyDict_SetItem(array_type->tp_dict, name, value) < 0) return nullptr;
        PyType_Modified(array_type);
        Py_RETURN_NONE;
    }
    if (PyObject_SetAttr(reinterpret_cast<PyObject*>(array_type), name, value) < 0) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"from_numpy", reinterpret_cast<PyCFunction>(from_numpy), METH_VARARGS | METH_KEYWORDS,
     "from_numpy(x, aval, device=None, copy=False)\n--\n\nAn Array with the contents of an ndarray of the aval's "
     "shape, cast to "
     "its dtype if that differs.\n\nUnless `copy`, the memory is shared where its layout allows it; the caller "
     "promises that "
     "nobody will write to it."},
    {"copy_of", reinterpret_cast<PyCFunction>(copy_of), METH_FASTCALL,
     "copy_of(x, dtype, weak_type, device)\n--\n\nAn Array with a copy of the contents of an ndarray, cast to the dtype "
     "if that differs."},
    {"zeros", reinterpret_cast<PyCFunction>(zeros), METH_VARARGS | METH_KEYWORDS,
     "zeros(aval, device=None)\n--\n\nAn Array of zeros."},
    {"writable", reinterpret_cast<PyCFunction>(writable), METH_VARARGS | METH_KEYWORDS,
     "writable(aval, device=None)\n--\n\nA new Array with undefined contents and a writable ndarray over its memory, "
     "to be filled before "
     "the Array is shown to anyone."},
    {"with_aval", reinterpret_cast<PyCFunction>(with_aval), METH_VARARGS | METH_KEYWORDS,
     "with_aval(x, aval, device=None)\n--\n\nAn Array over the same memory with another aval of as many bytes "
     "(reshape, bitcast, "
     "weak type), committed to `device`."},
    {"places_of", places_of, METH_O,
     "places_of(args)\n--\n\nThe Device or Sharding that each of a tuple of arguments is committed to, or None; None "
     "if none is and no mesh is in force."},
    {"part_of", reinterpret_cast<PyCFunction>(part_of), METH_FASTCALL,
     "part_of(x, index, value=...)\n--\n\nx[index] of integers and slices inside, a new Array; with a value, x with that "
     "there. None where Python must see to it."},
    {"set_array_attribute", set_array_attribute, METH_VARARGS,
     "set_array_attribute(name, value, only_shown=False)\n--\n\nPuts a function, property or other descriptor on the type "
     "Array. `only_shown`: who asks the type finds it, the operator itself stays what it is."},
    {"set_operators", reinterpret_cast<PyCFunction>(set_operators), METH_O,
     "set_operators(table)\n--\n\nSets the functions behind the operators of Array, by names such as 'add', 'radd', "
     "'getitem'; returns "
     "those set before."},
    {"set_hooks", reinterpret_cast<PyCFunction>(set_hooks), METH_VARARGS | METH_KEYWORDS,
     "set_hooks(**hooks)\n--\n\nHands Python functions and classes to the extension; None unsets one. Returns those "
     "set before."},
    {nullptr},
};

PyObject* array_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    if (hooks.assemble) return PyObject_Call(hooks.assemble, args, kwargs);
    return PyErr_Format(PyExc_TypeError, "Array: arrays are made by functions, as pullback.numpy.asarray is one");
}

PyType_Slot storage_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)}, {0, nullptr}};
PyType_Spec storage_spec = {"pullback._ext._core._Storage", sizeof(Storage), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, storage_slots};

}  // namespace

void append_array_methods(std::vector<PyType_Slot>& slots);  // array_methods.cpp
bool make_attributes_properties();                           // array_methods.cpp

bool add_array_type(PyObject* module) {
    storage_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&storage_spec));
    if (!storage_type) return false;
    std::vector<PyType_Slot> slots = {{Py_tp_dealloc, reinterpret_cast<void*>(array_dealloc)},
                                      {Py_tp_new, reinterpret_cast<void*>(array_new)}};
    append_operators(slots);
    append_array_methods(slots);
    slots.push_back({0, nullptr});
    PyType_Spec spec = {"pullback._ext._core.Array", sizeof(Array), 0, Py_TPFLAGS_DEFAULT, slots.data()};
    array_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return array_type && make_attributes_properties() &&
           PyModule_AddObjectRef(module, "Array", reinterpret_cast<PyObject*>(array_type)) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pb
