#define PY_SSIZE_T_CLEAN
#include "programs/foreign.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "ref.h"
#include "threads/thread_pool.h"
#include "xla/ffi/api/c_api.h"

struct XLA_FFI_Error {
    XLA_FFI_Error_Code code;
    std::string message;
};

struct XLA_FFI_Future {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    XLA_FFI_Error* error = nullptr;  // taken over
};

namespace pb {
namespace {

constexpr int kStages = 4;
constexpr int kOriginal = 1;  // the version of C functions f(out, in), before there was an interface

// ---- types of states and registered functions, of the process ----

std::mutex registry_mutex;

struct Type {
    int64_t id;
    void (*deleter)(void*);
};

std::map<std::string, Type>& types() {
    static auto* all = new std::map<std::string, Type>;
    return *all;
}

struct Target {
    std::array<void*, kStages> handlers{};  // of each stage, or null
    bool original = false;                  // the only one is a plain C function
    bool operator==(const Target& other) const { return handlers == other.handlers && original == other.original; }
};

std::map<std::string, Target>& targets() {
    static auto* all = new std::map<std::string, Target>;
    return *all;
}

// What is wrong with a registration, or nothing.
std::string register_target(const std::string& name, const Target& target) {
    if (!target.handlers[XLA_FFI_ExecutionStage_EXECUTE])
        return "FFI handler for " + name + " must provide an execute implementation";
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto [place, is_new] = targets().emplace(name, target);
    if (is_new || place->second == target) return {};
    return "Duplicate FFI handler registration for " + name + " with different bundle addresses";
}

// A type by its name; an id of 0 becomes a new one. Returns what is wrong, or nothing.
std::string register_type(const std::string& name, XLA_FFI_TypeId* id, const XLA_FFI_TypeInfo* info) {
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto found = types().find(name);
    if (found == types().end()) {
        int64_t fresh = id->type_id;
        if (!fresh) fresh = int64_t(types().size()) + 1;
        for (auto& [other, type] : types())
            if (type.id == fresh) return "type id of " + name + " is that of " + other;
        types()[name] = {fresh, info ? info->deleter : nullptr};
        id->type_id = fresh;
        return {};
    }
    if (id->type_id && id->type_id != found->second.id) return "type " + name + " is registered with another id";
    id->type_id = found->second.id;
    if (info && info->deleter) found->second.deleter = info->deleter;
    return {};
}

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

struct State {
    int64_t type = 0;
    void* object = nullptr;

    void drop() {
        if (!object) return;
        void (*deleter)(void*) = nullptr;
        {
            std::lock_guard<std::mutex> lock(registry_mutex);
            for (auto& [name, known] : types())
                if (known.id == type) deleter = known.deleter;
        }
        if (deleter) deleter(object);
        object = nullptr;
    }
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

}  // namespace
}  // namespace pb

// One run of one place. Only the state of instantiation outlives it.
struct XLA_FFI_ExecutionContext {
    pb::Site* site;
    int device;
    int64_t run;
    pb::State states[pb::kStages];

    pb::State& state(int stage) { return stage == XLA_FFI_ExecutionStage_INSTANTIATE ? site->state : states[stage]; }
    ~XLA_FFI_ExecutionContext() {
        for (pb::State& state : states) state.drop();
    }
};

namespace pb {
namespace {

// ---- what handlers call ----

XLA_FFI_Error* error(XLA_FFI_Error_Code code, std::string message) { return new XLA_FFI_Error{code, std::move(message)}; }

const char* name_of(XLA_FFI_Error_Code code) {
    static const char* names[] = {"OK",           "CANCELLED",           "UNKNOWN",           "INVALID_ARGUMENT",
                                  "DEADLINE_EXCEEDED", "NOT_FOUND",      "ALREADY_EXISTS",    "PERMISSION_DENIED",
                                  "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",     "OUT_OF_RANGE",
                                  "UNIMPLEMENTED", "INTERNAL",           "UNAVAILABLE",       "DATA_LOSS",
                                  "UNAUTHENTICATED"};
    return unsigned(code) < std::size(names) ? names[code] : "UNKNOWN";
}

XLA_FFI_Error* create_error(XLA_FFI_Error_Create_Args* a) { return error(a->errc, a->message ? a->message : ""); }
void get_message(XLA_FFI_Error_GetMessage_Args* a) { a->message = a->error->message.c_str(); }
void destroy_error(XLA_FFI_Error_Destroy_Args* a) { delete a->error; }

std::string text(const XLA_FFI_ByteSpan& span) { return std::string(span.ptr, span.len); }

XLA_FFI_Error* register_handler(XLA_FFI_Handler_Register_Args* a) {
    Target target;
    auto& b = a->bundle;
    target.handlers = {reinterpret_cast<void*>(b.instantiate), reinterpret_cast<void*>(b.prepare),
                       reinterpret_cast<void*>(b.initialize), reinterpret_cast<void*>(b.execute)};
    std::string wrong = register_target(text(a->name), target);
    return wrong.empty() ? nullptr : error(XLA_FFI_Error_Code_INVALID_ARGUMENT, wrong);
}

XLA_FFI_Error* get_stream(XLA_FFI_Stream_Get_Args*) {
    return error(XLA_FFI_Error_Code_UNIMPLEMENTED, "there are no streams on a CPU");
}

XLA_FFI_Error* register_type_of(XLA_FFI_Type_Register_Args* a) {
    std::string wrong = register_type(text(a->name), a->type_id, a->type_info);
    return wrong.empty() ? nullptr : error(XLA_FFI_Error_Code_INVALID_ARGUMENT, wrong);
}

XLA_FFI_Error* get_context(XLA_FFI_ExecutionContext_Get_Args*) {
    return error(XLA_FFI_Error_Code_NOT_FOUND, "the execution context holds no data of users");
}

XLA_FFI_Error* set_state(XLA_FFI_State_Set_Args* a) {
    State& state = a->ctx->state(a->stage);
    if (state.object) return error(XLA_FFI_Error_Code_INTERNAL, "the state of this stage is set already");
    state = {a->type_id->type_id, a->state};
    return nullptr;
}

XLA_FFI_Error* get_state(XLA_FFI_State_Get_Args* a) {
    State& state = a->ctx->state(a->stage);
    if (!state.object) return error(XLA_FFI_Error_Code_NOT_FOUND, "the state of this stage is not set");
    if (state.type != a->type_id->type_id)
        return error(XLA_FFI_Error_Code_INVALID_ARGUMENT, "the state of this stage has another type");
    a->state = state.object;
    return nullptr;
}

XLA_FFI_Error* allocate(XLA_FFI_DeviceMemory_Allocate_Args* a) {
    size_t alignment = std::max<size_t>(a->alignment, 64);
    if (alignment & (alignment - 1)) return error(XLA_FFI_Error_Code_INVALID_ARGUMENT, "alignment is no power of two");
    size_t size = (a->size + alignment - 1) / alignment * alignment;
    a->data = size < a->size ? nullptr : std::aligned_alloc(alignment, std::max(size, alignment));
    return a->data ? nullptr : error(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "no memory");
}

XLA_FFI_Error* release(XLA_FFI_DeviceMemory_Free_Args* a) {
    std::free(a->data);
    return nullptr;
}

// The interface allows tasks to run in the thread that asks for them; so a pool of one thread is what handlers see.
XLA_FFI_Error* schedule(XLA_FFI_ThreadPool_Schedule_Args* a) {
    a->task(a->data);
    return nullptr;
}

XLA_FFI_Error* count_threads(XLA_FFI_ThreadPool_NumThreads_Args* a) {
    *a->num_threads = 1;
    return nullptr;
}

XLA_FFI_Error* create_future(XLA_FFI_Future_Create_Args* a) {
    a->future = new XLA_FFI_Future;
    return nullptr;
}

XLA_FFI_Error* settle(XLA_FFI_Future* future, XLA_FFI_Error* wrong) {
    std::lock_guard<std::mutex> lock(future->mutex);
    future->done = true;
    future->error = wrong;
    future->changed.notify_all();
    return nullptr;
}

XLA_FFI_Error* set_available(XLA_FFI_Future_SetAvailable_Args* a) { return settle(a->future, nullptr); }
XLA_FFI_Error* set_error(XLA_FFI_Future_SetError_Args* a) { return settle(a->future, a->error); }

XLA_FFI_Error* get_run(XLA_FFI_RunId_Get_Args* a) {
    a->run_id = a->ctx->run;
    return nullptr;
}

XLA_FFI_Error* get_device(XLA_FFI_DeviceOrdinal_Get_Args* a) {
    a->device_ordinal = int32_t(a->ctx->device);
    return nullptr;
}

const XLA_FFI_Api api = {
    XLA_FFI_Api_STRUCT_SIZE,
    nullptr,
    {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR},
    nullptr,
    create_error,
    get_message,
    destroy_error,
    register_handler,
    get_stream,
    register_type_of,
    get_context,
    set_state,
    get_state,
    allocate,
    release,
    schedule,
    count_threads,
    create_future,
    set_available,
    set_error,
    get_run,
    get_device,
};

// ---- calls ----

std::string spent(XLA_FFI_Error* wrong) {
    if (!wrong) return {};
    std::string message = std::string(name_of(wrong->code)) + ": " + wrong->message;
    delete wrong;
    return message;
}

std::string wait_for(XLA_FFI_Future* future) {
    if (!future) return {};
    XLA_FFI_Error* wrong;
    {
        std::unique_lock<std::mutex> lock(future->mutex);
        future->changed.wait(lock, [&] { return future->done; });
        wrong = future->error;
    }
    delete future;
    return spent(wrong);
}

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

std::string call_stage(XLA_FFI_ExecutionContext& context, int stage, void** arguments, void** results) {
    Site& site = *context.site;
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
        &api,
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
    XLA_FFI_ExecutionContext context{&site, device, ++runs, {}};
    {
        std::lock_guard<std::mutex> lock(site.mutex);
        if (!site.instantiated) {
            std::string wrong = call_stage(context, XLA_FFI_ExecutionStage_INSTANTIATE, nullptr, nullptr);
            if (!wrong.empty()) {
                site.state.drop();
                return wrong;
            }
            site.instantiated = true;
        }
    }
    for (int stage : {XLA_FFI_ExecutionStage_PREPARE, XLA_FFI_ExecutionStage_INITIALIZE, XLA_FFI_ExecutionStage_EXECUTE}) {
        std::string wrong = call_stage(context, stage, arguments.data(), results);
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
    {
        std::lock_guard<std::mutex> lock(registry_mutex);
        auto found = targets().find(name);
        if (found != targets().end()) site->target = found->second;
    }
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

PyObject* py_known(PyObject*, PyObject* name) {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    std::lock_guard<std::mutex> lock(registry_mutex);
    auto found = targets().find(text);
    if (found == targets().end()) Py_RETURN_NONE;
    return PyBool_FromLong(!found->second.original);
}

PyMethodDef functions[] = {
    {"register_foreign", py_register_target, METH_VARARGS,
     "register_foreign(name, handlers, original)\n--\n\nRegisters four handlers (addresses, 0 for none), or a plain C "
     "function as the last."},
    {"register_foreign_type", py_register_type, METH_VARARGS,
     "register_foreign_type(name, type_id, type_info)\n--\n\nRegisters a type of states by the addresses of its id and "
     "information."},
    {"is_foreign_known", py_known, METH_O,
     "is_foreign_known(name)\n--\n\nNone if nothing has this name, else whether it has the typed interface."},
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
           PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace pb
