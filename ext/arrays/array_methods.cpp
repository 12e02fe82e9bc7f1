// The attributes and methods that Array has by itself: what its aval says, conversion to Python and NumPy, protocols.
// Everything with the semantics of an array library (sum, reshape, at, ...) is put on the type from Python.
#include "arrays/array.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "arrays/dlpack.h"
#include "hooks.h"
#include "calls/operators.h"
#include "ref.h"

namespace pb {
namespace {

PyArrayObject* as_numpy(PyObject* view) { return reinterpret_cast<PyArrayObject*>(view); }

// ---- conversion to Python scalars -----------------------------------------------------------------------------------

// The only element, as NumPy's item() gives it.
PyObject* single_item(Array* a) {
    if (!check_not_deleted(a)) return nullptr;
    switch (a->info->descr->type_num) {
        case NPY_FLOAT:
            return PyFloat_FromDouble(*static_cast<float*>(a->data));
        case NPY_DOUBLE:
            return PyFloat_FromDouble(*static_cast<double*>(a->data));
        case NPY_BOOL:
            return PyBool_FromLong(*static_cast<npy_bool*>(a->data));
        case NPY_INT:
            return PyLong_FromLong(*static_cast<int*>(a->data));
        default:
            break;
    }
    PyObject* view = numpy_view(a);
    return view ? PyObject_CallMethod(view, "item", nullptr) : nullptr;
}

// The element as a Python scalar for int(x) and its like, which take arrays without dimensions only.
PyObject* scalar(PyObject* self) {
    Array* a = as_array(self);
    if (a->info->ndim != 0) {
        PyErr_Format(PyExc_TypeError, "a Python number is made of an array without dimensions; this one has %d: index it, or call item()",
                     a->info->ndim);
        return nullptr;
    }
    return single_item(a);
}

PyObject* to_float(PyObject* self) {
    Ref item = Ref::steal(scalar(self));
    return item ? PyNumber_Float(item.get()) : nullptr;
}

PyObject* to_int(PyObject* self) {
    Ref item = Ref::steal(scalar(self));
    return item ? PyNumber_Long(item.get()) : nullptr;
}

PyObject* to_complex(PyObject* self, PyObject*) {
    Ref item = Ref::steal(scalar(self));
    return item ? PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), item.get()) : nullptr;
}

bool is_integer(const AvalInfo* info) {
    if (PyTypeNum_ISINTEGER(info->descr->type_num)) return true;
    // int2, int4 and so on of ml_dtypes are user-defined types of kind 'V' in NumPy's eyes; their items are Python ints
    return false;
}

PyObject* to_index(PyObject* self) {
    Array* a = as_array(self);
    if (a->info->ndim == 0) {
        if (is_integer(a->info)) return single_item(a);
        if (PyTypeNum_ISUSERDEF(a->info->descr->type_num)) {
            Ref item = Ref::steal(single_item(a));
            if (!item) return nullptr;
            if (PyLong_CheckExact(item.get())) return item.release();
        }
    }
    PyErr_SetString(PyExc_TypeError, "as an index of Python, only an integer array without dimensions can be used");
    return nullptr;
}

int to_bool(PyObject* self) {
    Array* a = as_array(self);
    if (a->info->size == 1) {
        Ref item = Ref::steal(single_item(a));
        return item ? PyObject_IsTrue(item.get()) : -1;
    }
    PyErr_SetString(
        PyExc_ValueError,
        a->info->size == 0
            ? "an empty array is neither true nor false, its truth value is ambiguous; x.size > 0 says if it has elements"
            : "truth value of an array is ambiguous where it has several elements; x.any() or x.all() says which is meant");
    return -1;
}

PyObject* item(PyObject* self, PyObject* args) {
    Array* a = as_array(self);
    if (PyTuple_GET_SIZE(args) == 0 && a->info->size == 1) return single_item(a);
    PyObject* view = numpy_view(a);
    if (!view) return nullptr;
    Ref method = Ref::steal(PyObject_GetAttrString(view, "item"));
    return method ? PyObject_CallObject(method.get(), args) : nullptr;
}

// In parts, between which Ctrl-C is heard.
PyObject* nested_list(PyArrayObject* view) {
    constexpr npy_intp kPart = 1 << 20;  // elements
    const npy_intp size = PyArray_SIZE(view);
    if (size <= kPart) return PyArray_ToList(view);
    const npy_intp n = PyArray_DIM(view, 0), rows = std::max<npy_intp>(1, kPart / (size / n));
    Ref result = Ref::steal(PyList_New(0));
    for (npy_intp i = 0; result && i < n; i += rows) {
        if (PyErr_CheckSignals() < 0) return nullptr;
        auto* array = reinterpret_cast<PyObject*>(view);
        Ref part, items;
        if (size / n > kPart) {
            part = Ref::steal(PySequence_GetItem(array, i));
            items = part ? Ref::steal(nested_list(as_numpy(part.get()))) : Ref();
            if (!items || PyList_Append(result.get(), items.get()) < 0) return nullptr;
            continue;
        }
        part = Ref::steal(PySequence_GetSlice(array, i, std::min(i + rows, n)));
        items = part ? Ref::steal(PyArray_ToList(as_numpy(part.get()))) : Ref();
        if (!items || PyList_SetSlice(result.get(), i, i, items.get()) < 0) return nullptr;
    }
    return result.release();
}

PyObject* tolist(PyObject* self, PyObject*) {
    Array* a = as_array(self);
    if (a->info->ndim == 0) return single_item(a);
    PyObject* view = numpy_view(a);
    return view ? nested_list(as_numpy(view)) : nullptr;
}

// ---- text -----------------------------------------------------------------------------------------------------------

PyObject* repr(PyObject* self) {
    Array* a = as_array(self);
    PyObject* view = numpy_view(a);
    if (!view) return nullptr;
    if (!hooks.repr) return hook_missing("repr");
    return PyObject_CallFunctionObjArgs(hooks.repr, view, a->info->weak ? Py_True : Py_False, nullptr);
}

PyObject* str(PyObject* self) {
    PyObject* view = numpy_view(as_array(self));
    return view ? PyObject_Str(view) : nullptr;
}

PyObject* format(PyObject* self, PyObject* spec) {
    Array* a = as_array(self);
    if (!PyUnicode_Check(spec)) {
        PyErr_Format(PyExc_TypeError, "__format__() argument must be str, not %.200s", Py_TYPE(spec)->tp_name);
        return nullptr;
    }
    PyObject* view = numpy_view(a);
    if (!view) return nullptr;
    Ref value = Ref::borrow(view);
    if (a->info->ndim == 0) value = Ref::steal(PyArray_ToScalar(a->data, as_numpy(view)));
    return value ? PyObject_Format(value.get(), spec) : nullptr;
}

// ---- NumPy, buffers, copies, pickles --------------------------------------------------------------------------------

PyObject* to_numpy(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"dtype", "context", "copy", nullptr};
    PyObject *dtype = Py_None, *context = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:__array__", const_cast<char**>(names), &dtype, &context,
                                     &copy))
        return nullptr;
    int must_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (must_copy < 0) return nullptr;
    Array* a = as_array(self);
    PyObject* view = numpy_view(a);
    if (!view) return nullptr;
    PyArray_Descr* descr = nullptr;
    if (dtype != Py_None && !PyArray_DescrConverter(dtype, &descr)) return nullptr;
    Ref keep = Ref::steal(reinterpret_cast<PyObject*>(descr));
    const bool alike = !descr || PyArray_EquivTypes(descr, a->info->descr);
    if (alike && !must_copy) return Py_NewRef(view);
    if (copy != Py_None && !must_copy) {
        PyErr_Format(PyExc_ValueError,
                     "Unable to avoid copy: dtype %R was asked for with copy=False, but the array is %R",
                     descr, a->info->descr);
        return nullptr;
    }
    Ref result = Ref::steal(PyArray_NewLikeArray(as_numpy(view), NPY_CORDER,
                                                 alike ? nullptr : reinterpret_cast<PyArray_Descr*>(Py_NewRef(keep.get())), 0));
    return result && copy_in_parts(as_numpy(result.get()), as_numpy(view)) ? result.release() : nullptr;
}

// Whether the array lies on more than one device; -1 with an error set.
int on_many_devices(Array* a) {
    if (!is_spread(a)) return 0;
    Ref count = Ref::steal(PyObject_GetAttrString(a->device, "num_devices"));
    const long number = count ? PyLong_AsLong(count.get()) : -1;
    return number < 0 ? -1 : number > 1;
}

int get_buffer(PyObject* self, Py_buffer* buffer, int flags) {
    buffer->obj = nullptr;
    Array* a = as_array(self);
    const int many = on_many_devices(a);
    if (many < 0) return -1;
    if (many) {
        PyErr_SetString(PyExc_BufferError,
                        "INVALID_ARGUMENT: an array over several devices has no single buffer; numpy.asarray(x) copies "
                        "it into one");
        return -1;
    }
    PyObject* view = numpy_view(a);
    if (!view) return -1;
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "Array is immutable; only read-only buffers can be had");
        return -1;
    }
    if (PyObject_GetBuffer(view, buffer, flags) == 0) return 0;
    buffer->obj = nullptr;
    if (PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_BufferError, "the buffer protocol has no format for dtype %R", a->info->descr);
    return -1;
}

PyObject* duplicate(PyObject* self, PyObject*) {
    Array* a = as_array(self);
    return reinterpret_cast<PyObject*>(new_array_sharing(retain_info(a->info), a));
}

PyObject* reduce(PyObject* self, PyObject*) {
    Array* a = as_array(self);
    PyObject* view = numpy_view(a);
    if (!view) return nullptr;
    if (!hooks.reconstruct) return hook_missing("reconstruct");
    return Py_BuildValue("O(OO)", hooks.reconstruct, view, a->info->weak ? Py_True : Py_False);
}

// ---- state ----------------------------------------------------------------------------------------------------------

PyObject* itself(PyObject* self, PyObject*) { return check_not_deleted(as_array(self)) ? Py_NewRef(self) : nullptr; }

PyObject* nothing(PyObject* self, PyObject*) {
    if (!check_not_deleted(as_array(self))) return nullptr;
    Py_RETURN_NONE;
}

PyObject* is_ready(PyObject* self, PyObject*) {
    if (!check_not_deleted(as_array(self))) return nullptr;
    Py_RETURN_TRUE;
}

PyObject* delete_method(PyObject* self, PyObject*) {
    if (!as_array(self)->deleted) delete_data(as_array(self));
    Py_RETURN_NONE;
}

PyObject* is_deleted(PyObject* self, PyObject*) { return PyBool_FromLong(as_array(self)->deleted); }

PyObject* pointer(PyObject* self, PyObject*) {
    return check_not_deleted(as_array(self)) ? PyLong_FromVoidPtr(as_array(self)->data) : nullptr;
}

PyObject* addressable_data(PyObject* self, PyObject* index) {
    if (is_spread(as_array(self))) {
        Ref shards = Ref::steal(PyObject_GetAttrString(self, "addressable_shards"));
        Ref shard = shards ? Ref::steal(PyObject_GetItem(shards.get(), index)) : Ref();
        return shard ? PyObject_GetAttrString(shard.get(), "data") : nullptr;
    }
    Py_ssize_t i = PyNumber_AsSsize_t(index, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return nullptr;
    if (i != 0 && i != -1) {
        PyErr_Format(PyExc_IndexError, "addressable_data: index is %zd, but the array has 1 shard", i);
        return nullptr;
    }
    return itself(self, nullptr);
}

PyObject* size_in_bytes(PyObject* self, PyObject*) { return PyLong_FromLongLong(as_array(self)->info->nbytes); }

// ---- attributes -----------------------------------------------------------------------------------------------------

const AvalInfo* info_of(PyObject* self) { return as_array(self)->info; }

PyObject* get_aval(PyObject* self, void*) { return Py_NewRef(info_of(self)->aval); }
PyObject* get_shape(PyObject* self, void*) { return Py_NewRef(info_of(self)->shape); }
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(reinterpret_cast<PyObject*>(info_of(self)->descr)); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(info_of(self)->ndim); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(info_of(self)->size); }
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromLongLong(info_of(self)->nbytes); }
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromSsize_t(PyDataType_ELSIZE(info_of(self)->descr)); }
PyObject* get_weak(PyObject* self, void*) { return PyBool_FromLong(info_of(self)->weak); }
PyObject* get_committed(PyObject* self, void*) { return PyBool_FromLong(as_array(self)->device != nullptr); }
PyObject* get_made(PyObject* self, void*) { return PyLong_FromLong(as_array(self)->made); }
PyObject* get_priority(PyObject*, void*) { return PyLong_FromLong(100); }

PyObject* get_raw_device(PyObject* self, void*) {
    PyObject* device = as_array(self)->device;
    return Py_NewRef(device ? device : Py_None);
}

// The device that holds the array; the sharding if there are several.
PyObject* get_device(PyObject* self, void*) {
    if (PyObject* place = as_array(self)->device) {
        if (is_device(place)) return Py_NewRef(place);
        Ref devices = Ref::steal(PyObject_GetAttrString(place, "device_set"));
        if (!devices && !PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
        PyErr_Clear();
        if (!devices) return Py_NewRef(place);
        if (PyObject_Length(devices.get()) != 1) return Py_NewRef(place);
        Ref each = Ref::steal(PyObject_GetIter(devices.get()));
        return each ? PyIter_Next(each.get()) : nullptr;
    }
    if (as_array(self)->home) return Py_NewRef(as_array(self)->home);
    return hooks.first_device ? PyObject_CallNoArgs(hooks.first_device) : hook_missing("first_device");
}

PyObject* get_sharding(PyObject* self, void*) {
    return hooks.sharding ? PyObject_CallOneArg(hooks.sharding, self) : hook_missing("sharding");
}

PyGetSetDef attributes[] = {
    {"aval", get_aval, nullptr, "The abstract value: shape, dtype and weak type."},
    {"shape", get_shape, nullptr, "The lengths of the dimensions, a tuple of int."},
    {"dtype", get_dtype, nullptr, "The type of the elements, a numpy.dtype."},
    {"ndim", get_ndim, nullptr, "The number of dimensions."},
    {"size", get_size, nullptr, "The number of elements."},
    {"nbytes", get_nbytes, nullptr, "The number of bytes of all elements."},
    {"itemsize", get_itemsize, nullptr, "The number of bytes of one element."},
    {"T", reversed_axes, nullptr, "The array with its axes in reverse order."},
    {"weak_type", get_weak, nullptr,
     "Whether the dtype yields to that of other operands, as that of Python scalars does."},
    {"committed", get_committed, nullptr, "Whether the array was put on its device explicitly."},
    {"_made", get_made, nullptr, "The number of the last trace that had begun when the array was made."},
    {"_device", get_raw_device, nullptr, "The device that the array is committed to, or None."},
    {"device", get_device, nullptr, "The device that holds the array."},
    {"sharding", get_sharding, nullptr, "How the array is spread over devices."},
    {"__array_priority__", get_priority, nullptr, "Above NumPy's arrays, so that ndarray + Array is an Array."},
    {nullptr},
};

PyMethodDef methods[] = {
    {"item", item, METH_VARARGS,
     "item($self, /, *args)\n--\n\nOne element as a Python scalar; raises ValueError if it is not clear which."},
    {"tolist", tolist, METH_NOARGS, "tolist($self, /)\n--\n\nThe elements as nested lists of Python scalars."},
    {"__complex__", to_complex, METH_NOARGS, "__complex__($self, /)\n--\n\nThe element of a scalar array."},
    {"__format__", format, METH_O, "__format__($self, spec, /)\n--\n\nFormats the element of a scalar array."},
    {"__array__", reinterpret_cast<PyCFunction>(to_numpy), METH_VARARGS | METH_KEYWORDS,
     "__array__($self, /, dtype=None, context=None, copy=None)\n--\n\nA read-only ndarray over the same memory; a copy "
     "if the dtype differs."},
    {"__copy__", duplicate, METH_NOARGS, "__copy__($self, /)\n--\n\nAnother Array over the same memory."},
    {"__deepcopy__", duplicate, METH_O, "__deepcopy__($self, memo, /)\n--\n\nAnother Array over the same memory."},
    {"__reduce__", reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nPickles the contents and the weak type."},
    {"__dlpack__", reinterpret_cast<PyCFunction>(array_to_dlpack), METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA DLPack capsule over "
     "the same memory."},
    {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "__dlpack_device__($self, /)\n--\n\n(kDLCPU, 0)."},
    {"block_until_ready", itself, METH_NOARGS,
     "block_until_ready($self, /)\n--\n\nThe array, once its contents are there."},
    {"copy_to_host_async", nothing, METH_NOARGS,
     "copy_to_host_async($self, /)\n--\n\nStarts a copy to host memory, where it is already."},
    {"is_ready", is_ready, METH_NOARGS, "is_ready($self, /)\n--\n\nWhether the contents are there."},
    {"delete", delete_method, METH_NOARGS,
     "delete($self, /)\n--\n\nFrees the memory now; any later use raises RuntimeError."},
    {"is_deleted", is_deleted, METH_NOARGS,
     "is_deleted($self, /)\n--\n\nWhether the array has been deleted or donated."},
    {"unsafe_buffer_pointer", pointer, METH_NOARGS,
     "unsafe_buffer_pointer($self, /)\n--\n\nThe address of the first element."},
    {"addressable_data", addressable_data, METH_O,
     "addressable_data($self, index, /)\n--\n\nThe shard of that number."},
    {"on_device_size_in_bytes", size_in_bytes, METH_NOARGS,
     "on_device_size_in_bytes($self, /)\n--\n\nThe bytes of memory used."},
    {nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Array, weakrefs), READONLY, nullptr},
    {nullptr},
};

// ---- attributes that are properties ---------------------------------------------------------------------------------

// JAX's arrays have properties, and libraries that wrap arrays look for those. One whose getter is called as a function
// takes 15 times as long as the getter in C, so this kind of property calls that. Its instances have the entry of
// `attributes` behind what a property has.
PyGetSetDef*& entry_of(PyObject* property) {
    return *reinterpret_cast<PyGetSetDef**>(reinterpret_cast<char*>(property) + PyProperty_Type.tp_basicsize);
}

PyObject* get_attribute(PyObject* property, PyObject* array, PyObject*) {
    if (!array || array == Py_None) return Py_NewRef(property);
    PyGetSetDef* entry = entry_of(property);
    if (is_array(array)) return entry->get(array, entry->closure);
    return PyErr_Format(PyExc_TypeError, "%s: an attribute of Array, but got %.100s", entry->name,
                        Py_TYPE(array)->tp_name);
}

PyObject* doc_of_attribute(PyObject* property, void*) { return PyUnicode_FromString(entry_of(property)->doc); }

PyGetSetDef attributes_of_attribute[] = {
    {"__doc__", doc_of_attribute, nullptr, nullptr},
    {nullptr},
};

PyType_Slot attribute_slots[] = {
    {Py_tp_descr_get, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_getset, attributes_of_attribute},
    {0, nullptr},
};

}  // namespace

bool make_attributes_properties() {
    PyType_Spec spec = {"pullback._ext._core.Attribute",
                        static_cast<int>(PyProperty_Type.tp_basicsize + sizeof(PyGetSetDef*)), 0, Py_TPFLAGS_DEFAULT,
                        attribute_slots};
    PyObject* base = reinterpret_cast<PyObject*>(&PyProperty_Type);
    Ref kind = Ref::steal(PyType_FromSpecWithBases(&spec, base));
    PyObject* type = reinterpret_cast<PyObject*>(array_type);
    for (PyGetSetDef* entry = attributes; kind && entry->name; ++entry) {
        if (entry->name[0] == '_') continue;
        Ref plain = Ref::steal(PyObject_GetAttrString(type, entry->name));
        Ref getter = plain ? Ref::steal(PyObject_GetAttrString(plain.get(), "__get__")) : Ref();
        if (!getter) return false;
        Ref property = Ref::steal(
            PyObject_CallFunction(kind.get(), "OOOs", getter.get(), Py_None, Py_None, entry->doc));
        if (!property) return false;
        entry_of(property.get()) = entry;
        if (PyObject_SetAttrString(type, entry->name, property.get()) < 0) return false;
    }
    return static_cast<bool>(kind);
}

void append_array_methods(std::vector<PyType_Slot>& slots) {
    auto add = [&](int slot, auto* value) { slots.push_back({slot, reinterpret_cast<void*>(value)}); };
    add(Py_nb_bool, to_bool);
    add(Py_nb_int, to_int);
    add(Py_nb_float, to_float);
    add(Py_nb_index, to_index);
    add(Py_tp_repr, repr);
    add(Py_tp_str, str);
    add(Py_bf_getbuffer, get_buffer);
    add(Py_tp_getset, attributes);
    add(Py_tp_methods, methods);
    add(Py_tp_members, members);
    slots.push_back({Py_tp_doc, const_cast<char*>("An immutable n-dimensional array in memory.")});
}

}  // namespace pb
