#include "programs/foreign.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "programs/foreign_api.h"
#include "ref.h"

namespace pb {
namespace {

constexpr int kOriginal = 1;  // the version of C functions f(out, in), before there was an interface

// ---- attributes ----

struct Attributes;

struct Attribute {
    std::string name, data;  // data: bytes of the elements, or the text
    XLA_FFI_ByteSpan name_span{}, text{};
    XLA_FFI_AttrType type{};
    XLA_FFI_Scalar scalar{};
    XLA_FFI_Array array{};
    std::unique_ptr<Attributes> dictionary;
};

// As the interface wants them; addresses stay as long as this does.
struct Attributes {
    std::vector<std::unique_ptr<Attribute>> all;
    std::vector<XLA_FFI_AttrType> types;
    std::vector<XLA_FFI_ByteSpan*> names;
    std::vector<void*> values;
    XLA_FFI_Attrs view{};

    void* value_of(Attribute& a) {
        switch (a.type) {
            case XLA_FFI_AttrType_SCALAR: return &a.scalar;
            case XLA_FFI_AttrType_ARRAY: return &a.array;
            case XLA_FFI_AttrType_STRING: return &a.text;
            default: return &a.dictionary->view;
        }
    }

    void finish() {
        for (auto& a : all) {
            types.push_back(a->type);
            names.push_back(&a->name_span);
            values.push_back(value_of(*a));
        }
        view = {XLA_FFI_Attrs_STRUCT_SIZE, nullptr, int64_t(all.size()), types.data(), names.data(), values.data()};
    }
};

// From a tuple of (name, kind, dtype, number of elements, bytes or a tuple of the same kind), sorted by name.
std::unique_ptr<Attributes> read_attributes(PyObject* object) {
    auto out = std::make_unique<Attributes>();
    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "ForeignFunction: attributes must be tuples");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
        const char* name;
        Py_ssize_t length, count;
        int kind, dtype;
        PyObject* value;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(object, i), "s#iinO", &name, &length, &kind, &dtype, &count, &value))
            return nullptr;
        auto a = std::make_unique<Attribute>();
        a->name.assign(name, size_t(length));
        a->name_span = {a->name.data(), a->name.size()};
        a->type = XLA_FFI_AttrType(kind);
        if (kind == XLA_FFI_AttrType_DICTIONARY) {
            a->dictionary = read_attributes(value);
            if (!a->dictionary) return nullptr;
        } else {
            char* bytes;
            Py_ssize_t size;
            if (PyBytes_AsStringAndSize(value, &bytes, &size) < 0) return nullptr;
            a->data.assign(bytes, size_t(size));
            a->scalar = {XLA_FFI_DataType(dtype), a->data.data()};
            a->array = {XLA_FFI_DataType(dtype), size_t(count), a->data.data()};
            a->text = {a->data.data(), a->data.size()};
        }
        out->all.push_back(std::move(a));
    }
    out->finish();
    return out;
}

// ---- one place that calls ----

struct Operand {
    XLA_FFI_DataType dtype;
    std::vector<int64_t> dims;
    int64_t bytes;
    int64_t result;  // whose memory it shares, or -1
};

struct Site {
    std::string name;
    Target target;
    int version;  // of the interface: kOriginal or the typed one
    std::vector<Operand> operands, results;
    std::unique_ptr<Attributes> attributes;
    std::mutex mutex;  // guards what follows
    bool instantiated = false;
    State state;

    ~Site() { state.drop(); }
};

struct Buffers {
    std::vector<XLA_FFI_Buffer> all;
    std::vector<void*> addresses;

    Buffers(std::vector<Operand>& operands, void** data) {
        all.reserve(operands.size());
        for (size_t i = 0; i < operands.size(); ++i) {
            Operand& o = operands[i];
            all.push_back({XLA_FFI_Buffer_STRUCT_SIZE, nullptr, o.dtype, data[i], int64_t(o.dims.size()), o.dims.data()});
            addresses.push_back(&all.back());
        }
    }
};

std::string call_stage(Site& site, XLA_FFI_ExecutionContext& context, int stage, void** arguments, void** results) {
    auto* handler = reinterpret_cast<XLA_FFI_Handler*>(site.target.handlers[size_t(stage)]);
    if (!handler) return {};
    // At instantiation there is no memory yet.
    const bool has_memory = stage != XLA_FFI_ExecutionStage_INSTANTIATE;
    static std::vector<Operand> none;
    Buffers in(has_memory ? site.operands : none, arguments), out(has_memory ? site.results : none, results);
    std::vector<XLA_FFI_ArgType> in_types(in.all.size(), XLA_FFI_ArgType_BUFFER);
    std::vector<XLA_FFI_RetType> out_types(out.all.size(), XLA_FFI_RetType_BUFFER);
    XLA_FFI_CallFrame frame = {
        XLA_FFI_CallFrame_STRUCT_SIZE,
        nullptr,
        &foreign_api,
        &context,
        XLA_FFI_ExecutionStage(stage),
        {XLA_FFI_Args_STRUCT_SIZE, nullptr, int64_t(in.all.size()), in_types.data(), in.addresses.data()},
        {XLA_FFI_Rets_STRUCT_SIZE, nullptr, int64_t(out.all.size()), out_types.data(), out.addresses.data()},
        site.attributes->view,
        nullptr,
    };
    std::string wrong = spent(handler(&frame));
    return wrong.empty() ? wait_for(frame.future) : wrong;
}

std::string call_site(Site& site, void** buffers, int device) {
    const size_t n = site.operands.size();
    std::vector<void*> arguments(buffers, buffers + n);
    void** results = buffers + n;
    for (size_t i = 0; i < n; ++i) {
        if (site.operands[i].result < 0) continue;
        void* shared = results[site.operands[i].result];
        if (shared != arguments[i]) std::memcpy(shared, arguments[i], size_t(site.operands[i].bytes));
        arguments[i] = shared;
    }
    if (site.version == kOriginal) {
        void* out = site.results.size() == 1 ? results[0] : static_cast<void*>(results);
        using Plain = void (*)(void*, const void**);
        reinterpret_cast<Plain>(site.target.handlers[XLA_FFI_ExecutionStage_EXECUTE])(
            out, const_cast<const void**>(arguments.data()));
        return {};
    }
    static std::atomic<int64_t> runs{0};
    XLA_FFI_ExecutionContext context{&site.state, device, ++runs, {}};
    {
        std::lock_guard<std::mutex> lock(site.mutex);
        if (!site.instantiated) {
            std::string wrong = call_stage(site, context, XLA_FFI_ExecutionStage_INSTANTIATE, nullptr, nullptr);
            if (!wrong.empty()) {
                site.state.drop();
                return wrong;
            }
            site.instantiated = true;
        }
    }
    for (int stage : {XLA_FFI_ExecutionStage_PREPARE, XLA_FFI_ExecutionStage_INITIALIZE, XLA_FFI_ExecutionStage_EXECUTE}) {
        std::string wrong = call_stage(site, context, stage, arguments.data(), results);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

// ---- the Python object ----

struct Foreign {
    PyObject_HEAD
    Site* site;
};

PyTypeObject* foreign_type = nullptr;

void foreign_dealloc(PyObject* self) {
    delete reinterpret_cast<Foreign*>(self)->site;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// From a tuple of (dtype, shape, bytes, result whose memory it shares or -1).
bool read_operands(PyObject* object, std::vector<Operand>& out) {
    if (!PyTuple_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "ForeignFunction: operands and results must be tuples");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
        int dtype;
        PyObject* shape;
        Operand operand;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(object, i), "iO!LL", &dtype, &PyTuple_Type, &shape, &operand.bytes,
                              &operand.result))
            return false;
        operand.dtype = XLA_FFI_DataType(dtype);
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(shape); ++k) {
            operand.dims.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, k)));
            if (operand.dims.back() == -1 && PyErr_Occurred()) return false;
        }
        out.push_back(std::move(operand));
    }
    return true;
}

PyObject* foreign_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"name", "version", "operands", "results", "attributes", nullptr};
    const char* name;
    int version;
    PyObject *operands, *results, *attributes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "siOOO:ForeignFunction", const_cast<char**>(names), &name, &version,
                                     &operands, &results, &attributes))
        return nullptr;
    auto site = std::make_unique<Site>();
    site->name = name;
    site->version = version;
    site->target = find_target(name);
    const bool there = site->target.handlers[XLA_FFI_ExecutionStage_EXECUTE];
    if (!there || site->target.original != (version == kOriginal)) {
        raise_foreign(std::string("NOT_FOUND: No FFI handler registered for ") + name + " on a platform Host" +
                      (there ? " with this version of the interface" : ""));
        return nullptr;
    }
    if (!read_operands(operands, site->operands) || !read_operands(results, site->results)) return nullptr;
    for (Operand& operand : site->operands) {
        if (operand.result < int64_t(site->results.size())) continue;
        PyErr_SetString(PyExc_ValueError, "ForeignFunction: an operand shares the memory of a result that is not there");
        return nullptr;
    }
    site->attributes = read_attributes(attributes);
    if (!site->attributes) return nullptr;
    PyObject* self = type->tp_alloc(type, 0);
    if (self) reinterpret_cast<Foreign*>(self)->site = site.release();
    return self;
}

// f(addresses), as a Python function of a program's host calls.
PyObject* foreign_call(PyObject* self, PyObject* args, PyObject* kwargs) {
    Site& site = *reinterpret_cast<Foreign*>(self)->site;
    const size_t count = site.operands.size() + site.results.size();
    PyObject* addresses;
    if ((kwargs && PyDict_Size(kwargs)) || !PyArg_ParseTuple(args, "O!", &PyTuple_Type, &addresses)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a foreign function takes a tuple of addresses");
        return nullptr;
    }
    if (size_t(PyTuple_GET_SIZE(addresses)) != count) {
        PyErr_Format(PyExc_TypeError, "a foreign function of %zu arrays got %zd addresses", count,
                     PyTuple_GET_SIZE(addresses));
        return nullptr;
    }
    std::vector<void*> buffers(count);
    for (size_t i = 0; i < count; ++i) {
        buffers[i] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(addresses, Py_ssize_t(i)));
        if (!buffers[i] && PyErr_Occurred()) return nullptr;
    }
    std::string wrong;
    Py_BEGIN_ALLOW_THREADS wrong = call_site(site, buffers.data(), 0);
    Py_END_ALLOW_THREADS if (wrong.empty()) Py_RETURN_NONE;
    raise_foreign(wrong);
    return nullptr;
}

PyType_Slot foreign_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(foreign_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(foreign_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(foreign_call)},
    {Py_tp_doc, const_cast<char*>("ForeignFunction(name, version, operands, results, attributes)\n--\n\n"
                                  "One place of a program that calls a registered C function.")},
    {0, nullptr},
};
PyType_Spec foreign_spec = {"pullback._ext._core.ForeignFunction", sizeof(Foreign), 0, Py_TPFLAGS_DEFAULT, foreign_slots};

// ---- registration from Python ----

PyObject* py_register_target(PyObject*, PyObject* args) {
    const char* name;
    PyObject* handlers;
    int original;
    if (!PyArg_ParseTuple(args, "sO!p:register_foreign", &name, &PyTuple_Type, &handlers, &original)) return nullptr;
    Target target;
    target.original = original;
    if (PyTuple_GET_SIZE(handlers) != kStages) {
        PyErr_SetString(PyExc_TypeError, "register_foreign: expected the addresses of four handlers");
        return nullptr;
    }
    for (int i = 0; i < kStages; ++i) {
        target.handlers[size_t(i)] = PyLong_AsVoidPtr(PyTuple_GET_ITEM(handlers, i));
        if (PyErr_Occurred()) return nullptr;
    }
    std::string wrong = register_target(name, target);
    if (wrong.empty()) Py_RETURN_NONE;
    raise_foreign("INVALID_ARGUMENT: " + wrong);
    return nullptr;
}

PyObject* py_register_type(PyObject*, PyObject* args) {
    const char* name;
    PyObject *id, *info;
    if (!PyArg_ParseTuple(args, "sOO:register_foreign_type", &name, &id, &info)) return nullptr;
    auto* type_id = static_cast<XLA_FFI_TypeId*>(PyLong_AsVoidPtr(id));
    auto* type_info = static_cast<const XLA_FFI_TypeInfo*>(PyLong_AsVoidPtr(info));
    if (PyErr_Occurred()) return nullptr;
    std::string wrong = type_id ? register_type(name, type_id, type_info) : "the address of the type's id is null";
    if (wrong.empty()) Py_RETURN_NONE;
    raise_foreign("INVALID_ARGUMENT: " + wrong);
    return nullptr;
}

PyMethodDef foreign_functions[] = {
    {"register_foreign", py_register_target, METH_VARARGS,
     "register_foreign(name, handlers, original)\n--\n\nRegisters four handlers (addresses, 0 for none), or a plain C "
     "function as the last."},
    {"register_foreign_type", py_register_type, METH_VARARGS,
     "register_foreign_type(name, type_id, type_info)\n--\n\nRegisters a type of states by the addresses of its id and "
     "information."},
    {nullptr},
};

}  // namespace

bool is_foreign(PyObject* object) { return Py_TYPE(object) == foreign_type; }

std::string call_foreign(PyObject* foreign, void** buffers, int device) {
    return call_site(*reinterpret_cast<Foreign*>(foreign)->site, buffers, device);
}

void raise_foreign(const std::string& message) {
    Ref module = Ref::steal(PyImport_ImportModule("pullback.util.errors"));
    Ref type = module ? Ref::steal(PyObject_GetAttrString(module.get(), "JaxRuntimeError")) : Ref();
    if (!type) return;
    Ref text = Ref::steal(PyUnicode_DecodeUTF8(message.data(), Py_ssize_t(message.size()), "replace"));
    if (text) PyErr_SetObject(type.get(), text.get());
}

bool add_foreign(PyObject* module) {
    foreign_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&foreign_spec));
    return foreign_type && PyModule_AddObjectRef(module, "ForeignFunction", reinterpret_cast<PyObject*>(foreign_type)) == 0 &&
           PyModule_AddFunctions(module, foreign_functions) == 0;
}

}  // namespace pb
