// Which types are pytree nodes. One process-wide registry, guarded by the GIL; registrations are never undone.
#include <unordered_map>

#include "pytree/pytree.h"

namespace pb::pytree {

namespace {

std::unordered_map<PyTypeObject*, const Registration*>& registry() {
    static auto* map = new std::unordered_map<PyTypeObject*, const Registration*>;
    return *map;
}

// What the registry says about an address, most lookups' fast path. A registered type is kept alive by its registration,
// so "no type at this address is registered" stays true whatever happens to the types, until the next registration.
struct CacheEntry {
    PyTypeObject* type;
    const Registration* registration;
};
constexpr size_t cache_size = 256;
CacheEntry cache[cache_size];

PyTypeObject* default_dict_type;
PyObject* fields_name;

// ---- OrderedDict: children in the order of the keys, aux the tuple of keys.

bool flatten_ordered_dict(PyObject* object, PyObject** children, PyObject** aux) {
    Ref items = Ref::steal(PyObject_CallMethod(object, "items", nullptr));
    Ref pairs = items ? Ref::steal(PySequence_Tuple(items.get())) : Ref();
    if (!pairs) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(pairs.get());
    Ref keys = Ref::steal(PyTuple_New(count)), values = Ref::steal(PyTuple_New(count));
    if (!keys || !values) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* pair = PyTuple_GET_ITEM(pairs.get(), i);
        PyTuple_SET_ITEM(keys.get(), i, Py_NewRef(PyTuple_GET_ITEM(pair, 0)));
        PyTuple_SET_ITEM(values.get(), i, Py_NewRef(PyTuple_GET_ITEM(pair, 1)));
    }
    *children = values.release();
    *aux = keys.release();
    return true;
}

PyObject* unflatten_ordered_dict(PyObject* aux, PyObject* const* children, Py_ssize_t count) {
    Ref result = Ref::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyODict_Type)));
    for (Py_ssize_t i = 0; result && i < count; ++i) {
        if (PyObject_SetItem(result.get(), PyTuple_GET_ITEM(aux, i), children[i]) < 0) return nullptr;
    }
    return result.release();
}

// ---- defaultdict: children by ascending key, aux (default_factory, tuple of keys).

bool flatten_default_dict(PyObject* object, PyObject** children, PyObject** aux) {
    Ref factory = Ref::steal(PyObject_GetAttrString(object, "default_factory"));
    Ref keys = factory ? Ref::steal(PySequence_List(object)) : Ref();
    if (!keys || PyList_Sort(keys.get()) < 0) return false;
    Ref key_tuple = Ref::steal(PyList_AsTuple(keys.get()));
    if (!key_tuple) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(key_tuple.get());
    Ref values = Ref::steal(PyTuple_New(count));
    if (!values) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* value = PyDict_GetItemWithError(object, PyTuple_GET_ITEM(key_tuple.get(), i));
        if (!value) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "defaultdict changed while it was being flattened");
            return false;
        }
        PyTuple_SET_ITEM(values.get(), i, Py_NewRef(value));
    }
    *aux = PyTuple_Pack(2, factory.get(), key_tuple.get());
    if (!*aux) return false;
    *children = values.release();
    return true;
}

PyObject* unflatten_default_dict(PyObject* aux, PyObject* const* children, Py_ssize_t count) {
    PyObject* keys = PyTuple_GET_ITEM(aux, 1);
    Ref result = Ref::steal(
        PyObject_CallOneArg(reinterpret_cast<PyObject*>(default_dict_type), PyTuple_GET_ITEM(aux, 0)));
    for (Py_ssize_t i = 0; result && i < count; ++i) {
        if (PyDict_SetItem(result.get(), PyTuple_GET_ITEM(keys, i), children[i]) < 0) return nullptr;
    }
    return result.release();
}

bool is_builtin_node(PyTypeObject* type) {
    return type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type || type == Py_TYPE(Py_None);
}

}  // namespace

bool is_named_tuple_type(PyTypeObject* type) {
    return PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS) && type != &PyTuple_Type &&
           _PyType_Lookup(type, fields_name) != nullptr;
}

const Registration* find_registration(PyTypeObject* type) {
    CacheEntry& entry = cache[(reinterpret_cast<uintptr_t>(type) >> 4) % cache_size];
    if (entry.type != type) {
        auto found = registry().find(type);
        entry = {type, found == registry().end() ? nullptr : found->second};
    }
    return entry.registration;
}

Kind classify(PyObject* object, const Registration** registration) {
    PyTypeObject* type = Py_TYPE(object);
    if (type == &PyTuple_Type) return Kind::tuple;
    if (type == &PyList_Type) return Kind::list;
    if (type == &PyDict_Type) return Kind::dict;
    if (object == Py_None) return Kind::none;
    if (const Registration* found = find_registration(type)) {
        *registration = found;
        return found->kind;
    }
    return is_named_tuple_type(type) ? Kind::named_tuple : Kind::leaf;
}

bool add_registration(Registration* registration) {
    PyTypeObject* type = registration->type;
    if (is_builtin_node(type) || registry().count(type)) {
        PyErr_Format(PyExc_ValueError, "Duplicate custom %sPyTreeDef type registration for %R.",
                     registration->kind == Kind::dataclass ? "dataclass " : "", type);
        Py_XDECREF(registration->to_iterable);
        Py_XDECREF(registration->from_iterable);
        Py_XDECREF(registration->with_keys);
        Py_XDECREF(registration->keyword_names);
        for (PyObject* name : registration->data_fields) Py_DECREF(name);
        for (PyObject* name : registration->meta_fields) Py_DECREF(name);
        Py_DECREF(type);
        delete registration;
        return false;
    }
    registry()[type] = registration;
    cache[(reinterpret_cast<uintptr_t>(type) >> 4) % cache_size] = {type, registration};
    return true;
}

bool init_registry() {
    fields_name = PyUnicode_InternFromString("_fields");
    Ref collections = Ref::steal(PyImport_ImportModule("collections"));
    PyObject* found = collections ? PyObject_GetAttrString(collections.get(), "defaultdict") : nullptr;
    if (!fields_name || !found) return false;
    default_dict_type = reinterpret_cast<PyTypeObject*>(found);

    auto* ordered = new Registration{.type = &PyODict_Type, .kind = Kind::custom};
    ordered->native_flatten = flatten_ordered_dict;
    ordered->native_unflatten = unflatten_ordered_dict;
    ordered->dict_keys = true;
    auto* defaults = new Registration{.type = default_dict_type, .kind = Kind::custom};
    defaults->native_flatten = flatten_default_dict;
    defaults->native_unflatten = unflatten_default_dict;
    defaults->dict_keys = true;
    return add_registration(ordered) && add_registration(defaults);
}

}  // namespace pb::pytree
