#include "calls/call_cache.h"

#include <structmember.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "calls/call_table.h"
#include "programs/executable.h"
#include "gil.h"
#include "calls/trace_state.h"
#include "calls/transformed.h"

namespace pb {
namespace {

PyTypeObject* jit_type = nullptr;

// ---- JitFunction ----------------------------------------------------------------------------------------------------

struct Jit {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *fun, *miss;   // strong; null only after the garbage collector has cleared the object
    Transformed transformed;  // null members: there is none
    PyObject* dict;
    PyObject* weakrefs;
    Table* table;
    bool eager, while_tracing;
    size_t warmup;
    StaticArguments* statics;
};

// All there are; guarded by the GIL.
std::unordered_set<PyObject*>& all_functions() {
    static auto* all = new std::unordered_set<PyObject*>;
    return *all;
}

Jit* as_jit(PyObject* object) { return reinterpret_cast<Jit*>(object); }

// Calls miss(args, kwargs); returns its pair.
PyObject* call_miss(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    if (!self->miss) return PyErr_Format(PyExc_RuntimeError, "this JitFunction has been cleared");
    Ref miss = Ref::borrow(self->miss);
    Ref positional = Ref::steal(PyTuple_New(Py_ssize_t(count)));
    Ref keywords = Ref::steal(PyDict_New());
    if (!positional || !keywords) return nullptr;
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, k), args[count + size_t(k)]) < 0) return nullptr;
    PyObject* arguments[3] = {nullptr, positional.get(), keywords.get()};
    Ref pair = Ref::steal(in_python(
        [&] { return PyObject_Vectorcall(miss.get(), arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr); }));
    if (!pair) return nullptr;
    if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2 ||
        (PyTuple_GET_ITEM(pair.get(), 1) != Py_None && Py_TYPE(PyTuple_GET_ITEM(pair.get(), 1)) != entry_type))
        return PyErr_Format(PyExc_TypeError, "miss returned %R; expected (result, CacheEntry or None)", pair.get());
    return pair.release();
}

PyObject* call_fun(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    if (!self->fun) return PyErr_Format(PyExc_RuntimeError, "this JitFunction has been cleared");
    if (trace_state.remembers && self->transformed.known) {
        Ref known = Ref::borrow(self->transformed.known), find = Ref::borrow(self->transformed.find);
        PyObject* result = call_transformed({known.get(), find.get()}, *self->statics, args, count, names);
        if (result || PyErr_Occurred()) return result;
    }
    Ref fun = Ref::borrow(self->fun);
    return in_python([&] { return PyObject_Vectorcall(fun.get(), args, count, names); });
}

// A call that has no key, or is made while the thread traces, or is watched (by miss()).
PyObject* call_python(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    if (self->eager && !trace_state.watched) return call_fun(self, args, count, names);
    Ref pair = Ref::steal(call_miss(self, args, count, names));
    return pair ? Py_NewRef(PyTuple_GET_ITEM(pair.get(), 0)) : nullptr;
}

// Whether the program runs on arrays of any size, and its results have the shape of its large arrays.
bool has_blocks_like(const Entry* e, const CallKey& key, const AvalInfo* large) {
    if (!is_executable(e->run) || e->kept) return false;
    const Program& p = *reinterpret_cast<Executable*>(e->run)->program;
    if (!p.blocks || p.in.size() != key.leaves.size()) return false;
    for (const AvalInfo* info : p.out)
        if (info->ndim != large->ndim || !PyArray_CompareLists(info->dims, large->dims, info->ndim)) return false;
    return true;
}

// Whether some array has so many elements that miss is asked before the function has run.
bool decides_at_once(const CallKey& key) {
    for (size_t i = 0; i < key.leaves.size(); ++i) {
        PyObject* leaf = key.leaves[i].object;
        switch (key.leaves[i].kind) {
            case LeafKind::array:
            case LeafKind::wrapped:
                if (is_array(leaf) && as_array(leaf)->info->size >= kDecides) return true;
                break;
            case LeafKind::ndarray:
                if (PyArray_SIZE(reinterpret_cast<PyArrayObject*>(leaf)) >= kDecides) return true;
                break;
            default: break;
        }
    }
    return false;
}

PyObject* jit_call_known(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    CallKey key;
    Build build = key.build(args, count, names, *self->statics);
    if (build == Build::error) return nullptr;
    if (build == Build::unknown) return call_python(self, args, count, names);
    uint64_t hash = 0;
    bool hashable = true;
    SlotRef found = self->table->find(key, &hash, &hashable);
    if (!found.slot && PyErr_Occurred()) {
        // An operand of a registered class with arrays in its aux data: operators leave it to the operand itself.
        if (!self->eager || !PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
        PyErr_Clear();
        return call_python(self, args, count, names);
    }
    if (!hashable) return call_python(self, args, count, names);
    if (found.slot && found.slot->entry) {
        Ref entry = Ref::borrow(reinterpret_cast<PyObject*>(found.slot->entry));
        const Entry* e = as_entry(entry.get());
        if (!e->uses || (++found.slot->calls <= e->uses && (found.slot->refused || !has_taken_long(e))))
            return run_entry(e, key);
    }
    std::vector<uint64_t> words;
    const AvalInfo* large = self->eager && self->warmup ? AnySize::read(key, words) : nullptr;
    std::shared_ptr<AnySize> sizes = large ? self->table->of_any_size(key, words) : nullptr;
    if (found.slot && found.slot->entry) {
        // miss is asked again
    } else if (sizes && sizes->entry) {
        Ref entry = Ref::borrow(reinterpret_cast<PyObject*>(sizes->entry));
        return run_sized(as_entry(entry.get()), key, large);
    } else if (sizes && (sizes->work += double(large->size)) >= AnySize::kPays) {
        trace_state.asked_work = std::exchange(sizes->work, 0);
    } else if (self->eager && (!found.slot || ++found.slot->calls <= found.slot->wait)) {
        if (!found.slot && self->warmup && !decides_at_once(key)) {
            SlotRef fresh = self->table->insert(key, hash);
            fresh.slot->calls = 1;
            fresh.slot->wait = self->warmup;
            return call_fun(self, args, count, names);
        }
        if (found.slot) return call_fun(self, args, count, names);
    }
    Ref pair = Ref::steal(call_miss(self, args, count, names));
    trace_state.asked_work = 0;
    if (!pair) return nullptr;
    PyObject* entry = PyTuple_GET_ITEM(pair.get(), 1);
    if (entry != Py_None) {
        if (!check_fits(as_entry(entry), key)) return nullptr;
        if (sizes && has_blocks_like(as_entry(entry), key, large)) {
            Entry* before = std::exchange(sizes->entry, as_entry(Py_NewRef(entry)));
            Py_XDECREF(before);
        }
        if (found.slot && found.slot->references > 1) {
            found.slot->set(as_entry(entry));
        } else {  // new, or it left the table meanwhile
            if (found.slot) hash = found.slot->hash;
            self->table->insert(key, hash).slot->set(as_entry(entry));
        }
    } else if (found.slot) {
        // Refused: what there was stays in use, and it takes longer until the next attempt.
        found.slot->calls = 0;
        found.slot->refused = true;
        found.slot->wait = std::min<size_t>(2 * found.slot->wait + 1, size_t(1) << 40);
    } else if (self->eager) {
        SlotRef fresh = self->table->insert(key, hash);
        fresh.slot->wait = 1;
    }
    return Py_NewRef(PyTuple_GET_ITEM(pair.get(), 0));
}

PyObject* jit_vectorcall(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
    size_t count = size_t(PyVectorcall_NARGS(flags));
    Ref self = Ref::borrow(object);
    try {
        return trace_state.tracing && !as_jit(object)->while_tracing ? call_python(as_jit(object), args, count, names)
                                   : jit_call_known(as_jit(object), args, count, names);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

PyObject* identity[6];  // interned names of what makes a function look like itself
PyObject *str_dict, *str_wrapped;

// Calls put(name, value) for each that `fun` has, and for __wrapped__. False with an error set.
template <typename Put>
bool for_identity(PyObject* fun, Put&& put) {
    for (PyObject* name : identity) {
        Ref value = Ref::steal(PyObject_GetAttr(fun, name));
        if (value) {
            if (put(name, value.get()) < 0) return false;
        } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
        } else {
            return false;
        }
    }
    return put(str_wrapped, fun) >= 0;
}

// Copies what makes a function look like itself: name, module, docstring, annotations and its own attributes.
bool copy_identity(PyObject* dict, PyObject* fun) {
    Ref attributes = Ref::steal(PyObject_GetAttr(fun, str_dict));
    if (!attributes) PyErr_Clear();
    if (attributes && PyDict_Check(attributes.get()) && PyDict_Update(dict, attributes.get()) < 0) return false;
    return for_identity(fun, [&](PyObject* name, PyObject* value) { return PyDict_SetItem(dict, name, value); });
}

PyObject* named_after(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "named_after: expected a function and what it is named after");
        return nullptr;
    }
    Ref attributes = Ref::steal(PyObject_GetAttr(args[1], str_dict));
    if (!attributes) PyErr_Clear();
    if (attributes && PyDict_Check(attributes.get()) && PyDict_GET_SIZE(attributes.get())) {
        Ref own = Ref::steal(PyObject_GetAttr(args[0], str_dict));
        if (!own || PyDict_Update(own.get(), attributes.get()) < 0) return nullptr;
    }
    // Objects that are called may have anything as their name; what a function cannot take is left out.
    auto put = [&](PyObject* name, PyObject* value) {
        if (PyObject_SetAttr(args[0], name, value) >= 0) return 0;
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
        return 0;
    };
    return for_identity(args[1], put) ? Py_NewRef(args[0]) : nullptr;
}

PyObject* clear_call_caches(PyObject*, PyObject*) {
    std::vector<Ref> functions;
    for (PyObject* function : all_functions())
        if (Py_REFCNT(function) > 0) functions.push_back(Ref::borrow(function));
    for (const Ref& function : functions)
        if (Table* table = as_jit(function.get())->table) table->clear();
    Py_RETURN_NONE;
}

PyMethodDef call_cache_functions[] = {
    {"clear_call_caches", clear_call_caches, METH_NOARGS,
     "clear_call_caches()\n--\n\nHas all JitFunctions forget their programs."},
    {"named_after", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(named_after)), METH_FASTCALL,
     "named_after(wrapper, fun)\n--\n\nThe function `wrapper` with the name, module, docstring and annotations of "
     "`fun`, and __wrapped__."},
    {nullptr},
};

bool add_names(PyObject* given, const char* argument, std::vector<PyObject*>& names) {
    Ref tuple = Ref::steal(PySequence_Tuple(given));
    if (!tuple) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
        PyObject* name = PyTuple_GET_ITEM(tuple.get(), i);
        if (!PyUnicode_CheckExact(name)) {
            PyErr_Format(PyExc_TypeError, "JitFunction: %s[%zd] is %R; expected a str", argument, i, name);
            return false;
        }
        names.push_back(Py_NewRef(name));
    }
    return true;
}

PyObject* jit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"fun", "miss", "static_argnums", "static_argnames", "maxsize", "warmup",
                                  "literal_argnums", "literal_argnames", "static_keywords",
                                  "while_tracing", "known", "find", nullptr};
    PyObject *fun, *miss, *argnums = nullptr, *argnames = nullptr, *warmup = Py_None, *literal = nullptr,
             *literal_names = nullptr, *known = nullptr, *find = nullptr;
    int static_keywords = 0, while_tracing = 0;
    Py_ssize_t maxsize = 4096;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOnOOOppO!O:JitFunction", const_cast<char**>(names), &fun, &miss,
                                     &argnums, &argnames, &maxsize, &warmup, &literal, &literal_names,
                                     &static_keywords, &while_tracing, &PyDict_Type, &known, &find))
        return nullptr;
    if (!PyCallable_Check(fun) || !PyCallable_Check(miss))
        return PyErr_Format(PyExc_TypeError, "JitFunction: expected two callables; got %R and %R", fun, miss);
    if (!known != !find) return PyErr_Format(PyExc_TypeError, "JitFunction: known and find belong together");
    if (maxsize < 1) return PyErr_Format(PyExc_ValueError, "JitFunction: maxsize is %zd; expected at least 1", maxsize);
    Ref object = Ref::steal(type->tp_alloc(type, 0));
    if (!object) return nullptr;
    all_functions().insert(object.get());
    Jit* self = as_jit(object.get());
    self->vectorcall = jit_vectorcall;
    self->fun = Py_NewRef(fun);
    self->miss = Py_NewRef(miss);
    if (known) self->transformed = {Py_NewRef(known), Py_NewRef(find)};
    self->table = new Table;
    self->table->maxsize = size_t(maxsize);
    if (warmup != Py_None) {
        Py_ssize_t calls = PyLong_AsSsize_t(warmup);
        if (calls == -1 && PyErr_Occurred()) return nullptr;
        if (calls < 0) return PyErr_Format(PyExc_ValueError, "JitFunction: warmup is %zd; expected at least 0", calls);
        self->eager = true;
        self->warmup = size_t(calls);
    }
    self->while_tracing = while_tracing;
    self->statics = new StaticArguments;
    self->statics->all_names = static_keywords;
    self->dict = PyDict_New();
    if (!self->dict || !copy_identity(self->dict, fun)) return nullptr;
    if (argnums) {
        Ref tuple = Ref::steal(PySequence_Tuple(argnums));
        for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple.get()); ++i) {
            Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple.get(), i));
            if (n == -1 && PyErr_Occurred()) return nullptr;
            self->statics->add_position(n);
        }
        if (!tuple) return nullptr;
    }
    if (argnames && !add_names(argnames, "static_argnames", self->statics->names)) return nullptr;
    if (literal_names && !add_names(literal_names, "literal_argnames", self->statics->literal_names)) return nullptr;
    if (literal) {
        Ref tuple = Ref::steal(PySequence_Tuple(literal));
        if (!tuple) return nullptr;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
            Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple.get(), i));
            if (n == -1 && PyErr_Occurred()) return nullptr;
            if (n < 0 || n > 63)
                return PyErr_Format(PyExc_ValueError, "JitFunction: literal_argnums are 0 to 63; got %zd", n);
            self->statics->literal |= uint64_t(1) << n;
        }
    }
    return object.release();
}

int jit_traverse(PyObject* object, visitproc visit, void* arg) {
    Jit* self = as_jit(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->fun);
    Py_VISIT(self->miss);
    Py_VISIT(self->transformed.known);
    Py_VISIT(self->transformed.find);
    Py_VISIT(self->dict);
    if (self->table)
        for (auto& [hash, slot] : self->table->slots) {
            if (slot->references > 1) continue;  // a call in progress holds it
            Py_VISIT(reinterpret_cast<PyObject*>(slot->entry));
            for (const KeyObject& o : slot->key.objects) Py_VISIT(o.object);
        }
    if (self->table)
        for (auto& known : self->table->any_size)
            if (known.use_count() == 1) Py_VISIT(reinterpret_cast<PyObject*>(known->entry));
    return 0;
}

int jit_clear(PyObject* object) {
    Jit* self = as_jit(object);
    if (self->table) self->table->clear();
    Py_CLEAR(self->fun);
    Py_CLEAR(self->miss);
    Py_CLEAR(self->transformed.known);
    Py_CLEAR(self->transformed.find);
    Py_CLEAR(self->dict);
    return 0;
}

void jit_dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    Jit* self = as_jit(object);
    all_functions().erase(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    jit_clear(object);
    delete self->table;
    if (self->statics)
        for (const auto* names : {&self->statics->names, &self->statics->literal_names})
            for (PyObject* name : *names) Py_DECREF(name);
    delete self->statics;
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* jit_get(PyObject* self, PyObject* instance, PyObject*) {
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* jit_repr(PyObject* self) {
    return PyUnicode_FromFormat("<PjitFunction of %R>", as_jit(self)->fun ? as_jit(self)->fun : Py_None);
}

PyObject* jit_cache_size(PyObject* self, PyObject*) { return PyLong_FromSize_t(as_jit(self)->table->entries()); }

PyObject* jit_clear_method(PyObject* self, PyObject*) {
    as_jit(self)->table->clear();
    Py_RETURN_NONE;
}

// As its attribute _reduce() says, else by name, as plain functions at the top of a module do.
PyObject* jit_reduce(PyObject* self, PyObject*) {
    PyObject* dict = as_jit(self)->dict;
    PyObject* how = dict ? PyDict_GetItemString(dict, "_reduce") : nullptr;
    return how ? PyObject_CallNoArgs(Ref::borrow(how).get()) : PyObject_GetAttrString(self, "__qualname__");
}
PyObject* jit_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef jit_methods[] = {
    {"cache_size", jit_cache_size, METH_NOARGS,
     "cache_size($self, /)\n--\n\nThe number of programs that are remembered."},
    {"clear", jit_clear_method, METH_NOARGS, "clear($self, /)\n--\n\nForgets all programs."},
    {"__reduce__", jit_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nHow it is pickled: by name, or as its attribute _reduce() says."},
    {"__copy__", jit_copy, METH_NOARGS, "__copy__($self, /)\n--\n\nThe function itself."},
    {"__deepcopy__", jit_copy, METH_O, "__deepcopy__($self, memo, /)\n--\n\nThe function itself."},
    {nullptr},
};
PyMemberDef jit_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Jit, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Jit, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Jit, vectorcall), READONLY, nullptr},
    {nullptr},
};
// The signature that was set, else that of the function: `inspect.signature(f, follow_wrapped=False)` asks for it.
PyObject* jit_signature(PyObject* self, void*) {
    PyObject* dict = as_jit(self)->dict;
    PyObject* set = dict ? PyDict_GetItemString(dict, "__signature__") : nullptr;
    if (set) return Py_NewRef(set);
    Ref wrapped = Ref::steal(PyObject_GetAttr(self, str_wrapped));
    Ref inspect = wrapped ? Ref::steal(PyImport_ImportModule("inspect")) : Ref();
    return inspect ? PyObject_CallMethod(inspect.get(), "signature", "O", wrapped.get()) : nullptr;
}
int jit_set_signature(PyObject* self, PyObject* value, void*) {
    Ref dict = Ref::steal(PyObject_GenericGetDict(self, nullptr));
    if (!dict) return -1;
    return value ? PyDict_SetItemString(dict.get(), "__signature__", value)
                 : PyDict_DelItemString(dict.get(), "__signature__");
}

PyGetSetDef jit_attributes[] = {
    {"__signature__", jit_signature, jit_set_signature, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr},
    {nullptr},
};
PyType_Slot jit_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(jit_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(jit_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(jit_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(jit_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(jit_get)},
    {Py_tp_repr, reinterpret_cast<void*>(jit_repr)},
    {Py_tp_methods, jit_methods},
    {Py_tp_members, jit_members},
    {Py_tp_getset, jit_attributes},
    {Py_tp_doc, const_cast<char*>("A function that remembers, by the types of its arguments, which program to run.")},
    {0, nullptr},
};
// Libraries know jitted functions by the name that this type has in JAX.
PyType_Spec jit_spec = {"pullback._ext._core.PjitFunction", sizeof(Jit), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE |
                            Py_TPFLAGS_METHOD_DESCRIPTOR,
                        jit_slots};

}  // namespace

bool add_call_cache_types(PyObject* module) {
    const char* names[] = {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__"};
    for (size_t i = 0; i < std::size(names); ++i)
        if (!(identity[i] = PyUnicode_InternFromString(names[i]))) return false;
    str_dict = PyUnicode_InternFromString("__dict__");
    str_wrapped = PyUnicode_InternFromString("__wrapped__");
    jit_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&jit_spec));
    return str_dict && str_wrapped && jit_type && PyModule_AddFunctions(module, call_cache_functions) == 0 &&
           add_entry_type(module) &&
           PyModule_AddObjectRef(module, "JitFunction", reinterpret_cast<PyObject*>(jit_type)) == 0 &&
           PyModule_AddObjectRef(module, "PjitFunction", reinterpret_cast<PyObject*>(jit_type)) == 0;
}

}  // namespace pb
