#include "arrays/dlpack.h"

#include <type_traits>

#include "arrays/array.h"
#include "gil.h"
#include "hooks.h"
#include "ref.h"

namespace pb {
namespace {

// The structures of the DLPack ABI.
struct DLDevice {
    int32_t device_type;
    int32_t device_id;
};
struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};
struct DLTensor {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
};
struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
};
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned*);
    uint64_t flags;
    DLTensor dl_tensor;
};
constexpr int32_t kCPU = 1, kCUDAHost = 3;
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

// What an exported tensor holds on to. Shape and strides live here, as the array may go first.
template <typename Managed>
struct Export {
    Managed managed;
    PyObject* owner;
    int64_t shape[NPY_MAXDIMS];
    int64_t strides[NPY_MAXDIMS];
};

template <typename Managed>
void release_export(Managed* managed) {
    auto* e = static_cast<Export<Managed>*>(managed->manager_ctx);
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = take_gil();
        Py_DECREF(e->owner);
        PyGILState_Release(gil);
    }
    delete e;
}

struct DtypeName {
    const char* name;
    DLDataType type;
};
const DtypeName dtype_names[] = {
    {"bool", {kBool, 8, 1}},
    {"int8", {kInt, 8, 1}},
    {"int16", {kInt, 16, 1}},
    {"int32", {kInt, 32, 1}},
    {"int64", {kInt, 64, 1}},
    {"uint8", {kUInt, 8, 1}},
    {"uint16", {kUInt, 16, 1}},
    {"uint32", {kUInt, 32, 1}},
    {"uint64", {kUInt, 64, 1}},
    {"float16", {kFloat, 16, 1}},
    {"float32", {kFloat, 32, 1}},
    {"float64", {kFloat, 64, 1}},
    {"bfloat16", {kBfloat, 16, 1}},
    {"complex64", {kComplex, 64, 1}},
    {"complex128", {kComplex, 128, 1}},
    // DLPack 1.1
    {"float8_e3m4", {7, 8, 1}},
    {"float8_e4m3", {8, 8, 1}},
    {"float8_e4m3b11fnuz", {9, 8, 1}},
    {"float8_e4m3fn", {10, 8, 1}},
    {"float8_e4m3fnuz", {11, 8, 1}},
    {"float8_e5m2", {12, 8, 1}},
    {"float8_e5m2fnuz", {13, 8, 1}},
    {"float8_e8m0fnu", {14, 8, 1}},
};

bool dtype_to_dlpack(PyArray_Descr* descr, DLDataType* out) {
    Ref name = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(descr), "name"));
    if (!name) return false;
    for (const DtypeName& entry : dtype_names)
        if (PyUnicode_CompareWithASCIIString(name.get(), entry.name) == 0) {
            *out = entry.type;
            return true;
        }
    PyErr_Format(PyExc_BufferError, "DLPack has no type for dtype %U", name.get());
    return false;
}

// The NumPy dtype of a DLPack type (new reference), found by name; ml_dtypes' are known to NumPy once that is imported.
PyArray_Descr* dtype_from_dlpack(DLDataType type) {
    for (const DtypeName& entry : dtype_names)
        if (entry.type.code == type.code && entry.type.bits == type.bits && type.lanes == 1) {
            Ref name = Ref::steal(PyUnicode_FromString(entry.name));
            PyArray_Descr* descr = nullptr;
            if (name && PyArray_DescrConverter(name.get(), &descr)) return descr;
            return nullptr;
        }
    PyErr_Format(PyExc_BufferError, "from_dlpack: type code %d with %d bits and %d lanes is not supported", type.code,
                 type.bits, type.lanes);
    return nullptr;
}

// Puts an error that is set aside for as long as it lives.
class PendingError {
  public:
    PendingError() { PyErr_Fetch(&type_, &value_, &traceback_); }
    ~PendingError() { PyErr_Restore(type_, value_, traceback_); }

  private:
    PyObject *type_, *value_, *traceback_;
};

template <typename Managed>
void capsule_destructor(PyObject* capsule) {
    PendingError kept;
    constexpr const char* name = sizeof(Managed) == sizeof(DLManagedTensor) ? "dltensor" : "dltensor_versioned";
    if (!PyCapsule_IsValid(capsule, name)) return;  // consumed: the consumer calls the deleter
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter) managed->deleter(managed);
}

template <typename Managed>
PyObject* export_array(Array* a, bool copied) {
    DLDataType type;
    if (!dtype_to_dlpack(a->info->descr, &type)) return nullptr;
    PyObject* view = numpy_view(a);
    if (!view) return nullptr;
    auto* e = new Export<Managed>{};
    DLTensor& tensor = e->managed.dl_tensor;
    tensor.data = a->data;
    tensor.device = {kCPU, 0};
    tensor.ndim = a->info->ndim;
    tensor.dtype = type;
    tensor.shape = e->shape;
    tensor.strides = e->strides;
    int64_t stride = 1;
    for (int i = a->info->ndim - 1; i >= 0; --i) {
        e->shape[i] = a->info->dims[i];
        e->strides[i] = stride;
        stride *= a->info->dims[i];
    }
    e->managed.manager_ctx = e;
    e->managed.deleter = release_export<Managed>;
    e->owner = Py_NewRef(a->owner);
    const char* name = "dltensor";
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
        e->managed.version = {1, 1};
        e->managed.flags = copied ? kIsCopied : kReadOnly;
        name = "dltensor_versioned";
    }
    PyObject* capsule = PyCapsule_New(&e->managed, name, capsule_destructor<Managed>);
    if (!capsule) release_export(&e->managed);
    return capsule;
}

}  // namespace

PyObject* array_to_dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream,
                                     &max_version, &device, &copy))
        return nullptr;
    Array* a = as_array(self);
    if (!check_not_deleted(a)) return nullptr;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__: argument 'stream' must be None for an array in host memory");
        return nullptr;
    }
    if (device != Py_None) {
        int type, id;
        if (!PyTuple_Check(device) ||
            !PyArg_ParseTuple(device, "ii;__dlpack__: dl_device must be (type, id)", &type, &id)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "__dlpack__: argument 'dl_device' must be (type, id)");
            return nullptr;
        }
        if (type != kCPU || id != 0) {
            PyErr_Format(PyExc_BufferError,
                         "__dlpack__: device (%d, %d) was asked for, but the array is in host memory, (1, 0)", type, id);
            return nullptr;
        }
    }
    int must_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (must_copy < 0) return nullptr;
    Ref source = Ref::borrow(self);
    if (must_copy) {
        PyObject* view = numpy_view(a);
        if (!view) return nullptr;
        source = Ref::steal(reinterpret_cast<PyObject*>(
            new_array_from_numpy(retain_info(a->info), reinterpret_cast<PyArrayObject*>(view), false)));
        if (!source) return nullptr;
    }
    long major = 0;
    if (max_version != Py_None) {
        if (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) < 1) {
            PyErr_SetString(PyExc_TypeError, "__dlpack__: argument 'max_version' must be (major, minor)");
            return nullptr;
        }
        major = PyLong_AsLong(PyTuple_GET_ITEM(max_version, 0));
        if (major == -1 && PyErr_Occurred()) return nullptr;
    }
    return major >= 1 ? export_array<DLManagedTensorVersioned>(as_array(source.get()), must_copy)
                      : export_array<DLManagedTensor>(as_array(source.get()), must_copy);
}

PyObject* array_dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", kCPU, 0); }

namespace {

// What a capsule holds: one of the two, and the tensor in it; no tensor where an error is set.
struct Opened {
    DLManagedTensor* plain = nullptr;
    DLManagedTensorVersioned* versioned = nullptr;
    DLTensor* tensor = nullptr;
};

// BufferError for a tensor that can't be read here, TypeError for what is no capsule. The capsule keeps the tensor.
Opened open_capsule(PyObject* capsule) {
    DLTensor* tensor;
    Opened opened;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        opened.plain = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
        tensor = &opened.plain->dl_tensor;
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        auto* versioned =
            static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
        opened.versioned = versioned;
        if (versioned->version.major != 1) {
            PyErr_Format(PyExc_BufferError, "from_dlpack: version %u.%u of DLPack is not supported",
                         versioned->version.major, versioned->version.minor);
            return {};
        }
        tensor = &versioned->dl_tensor;
    } else {
        PyErr_Format(PyExc_TypeError, "from_dlpack: expected a DLPack capsule that has not been consumed; got %R",
                     capsule);
        return {};
    }
    if (tensor->device.device_type != kCPU && tensor->device.device_type != kCUDAHost) {
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack: the tensor is on a device of type %d; only host memory (1) can be read",
                     tensor->device.device_type);
        return {};
    }
    if (tensor->ndim < 0 || tensor->ndim > NPY_MAXDIMS) {
        PyErr_Format(PyExc_BufferError, "from_dlpack: the tensor has %d dimensions", tensor->ndim);
        return {};
    }
    opened.tensor = tensor;
    return opened;
}

// Takes a tensor out of its capsule: the owner calls its deleter, be it as owner of the new array or at the end of a copy.
Ref own(PyObject* capsule, const Opened& opened) {
    static const auto finish = [](PyObject* owner) {
        PendingError kept;  // a deleter may be Python
        void* managed = PyCapsule_GetPointer(owner, "pullback_dlpack");
        if (PyCapsule_GetContext(owner)) {
            auto* v = static_cast<DLManagedTensorVersioned*>(managed);
            if (v->deleter) v->deleter(v);
        } else {
            auto* p = static_cast<DLManagedTensor*>(managed);
            if (p->deleter) p->deleter(p);
        }
    };
    bool is_plain = opened.plain != nullptr;
    void* managed = is_plain ? static_cast<void*>(opened.plain) : opened.versioned;
    Ref owner = Ref::steal(PyCapsule_New(managed, "pullback_dlpack", [](PyObject* o) { finish(o); }));
    if (!owner) return owner;
    PyCapsule_SetContext(owner.get(), opened.versioned);
    PyCapsule_SetName(capsule, is_plain ? "used_dltensor" : "used_dltensor_versioned");
    return owner;
}

}  // namespace

PyObject* from_dlpack(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"capsule", "copy", nullptr};
    PyObject *capsule, *wanted = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:from_dlpack", const_cast<char**>(names), &capsule, &wanted))
        return nullptr;
    int copy = wanted == Py_None ? 0 : PyObject_IsTrue(wanted);
    if (copy < 0) return nullptr;
    bool may_copy = wanted == Py_None || copy;
    Opened opened = open_capsule(capsule);
    DLTensor* tensor = opened.tensor;
    if (!tensor) return nullptr;
    Ref descr = Ref::steal(reinterpret_cast<PyObject*>(dtype_from_dlpack(tensor->dtype)));
    if (!descr) return nullptr;
    Ref shape = Ref::steal(PyTuple_New(tensor->ndim));
    if (!shape) return nullptr;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    npy_intp itemsize = PyDataType_ELSIZE(reinterpret_cast<PyArray_Descr*>(descr.get())), stride = itemsize;
    for (int i = tensor->ndim - 1; i >= 0; --i) {
        dims[i] = tensor->shape[i];
        strides[i] = tensor->strides ? tensor->strides[i] * itemsize : stride;
        stride *= dims[i];
        PyObject* n = PyLong_FromLongLong(dims[i]);
        if (!n) return nullptr;
        PyTuple_SET_ITEM(shape.get(), i, n);
    }
    if (!hooks.make_aval) return hook_missing("make_aval");
    Ref aval = Ref::steal(PyObject_CallFunctionObjArgs(hooks.make_aval, shape.get(), descr.get(), Py_False, nullptr));
    AvalInfo* info = aval ? aval_info(aval.get()) : nullptr;
    if (!info) return nullptr;

    Ref owner = own(capsule, opened);
    if (!owner) {
        release_info(info);
        return nullptr;
    }
    char* data = static_cast<char*>(tensor->data) + tensor->byte_offset;
    char nowhere[16] = {};
    Py_INCREF(descr.get());
    Ref view = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(descr.get()),
                                               tensor->ndim, dims, strides, info->nbytes ? data : nowhere, 0, nullptr));
    if (!view || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view.get()), owner.release()) < 0) {
        release_info(info);
        return nullptr;
    }
    PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(view.get()),
                        NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
    bool empty = !info->nbytes;
    Array* array = new_array_from_numpy(info, reinterpret_cast<PyArrayObject*>(view.get()), !copy && !empty);
    if (array && !may_copy && !empty && array->data != data) {
        Py_DECREF(array);
        PyErr_SetString(PyExc_ValueError,
                        "from_dlpack: copy is False, but the tensor must be copied: it is not contiguous, row by row, at a "
                        "multiple of 64 bytes");
        return nullptr;
    }
    return reinterpret_cast<PyObject*>(array);
}

bool add_dlpack(PyObject* module) {
    static PyMethodDef functions[] = {
        {"from_dlpack", reinterpret_cast<PyCFunction>(from_dlpack), METH_VARARGS | METH_KEYWORDS,
         "from_dlpack(capsule, copy=None)\n--\n\nAn Array from a DLPack capsule, without a copy where its layout "
         "allows it; ValueError where it does not and `copy` is False."},
        {nullptr},
    };
    return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pb
