// The entries of key paths: small immutable objects with one field, compared and hashed by type and value.
#include "pytree/pytree.h"

#include <structmember.h>

#include <cstring>

namespace pb::pytree {

namespace {

struct KeyObject {
    PyObject_HEAD
    PyObject* value;
};

PyTypeObject *dict_key_type, *sequence_key_type, *attr_key_type, *flat_index_key_type;

constexpr Py_ssize_t cached_indices = 1024;
PyObject* sequence_keys[cached_indices];  // strong, made on first use

PyObject* make_key(PyTypeObject* type, PyObject* value) {
    auto* key = PyObject_GC_New(KeyObject, type);
    if (!key) return nullptr;
    key->value = Py_NewRef(value);
    // Strings and integers cannot be part of a reference cycle.
    if (!PyUnicode_CheckExact(value) && !PyLong_CheckExact(value)) PyObject_GC_Track(key);
    return reinterpret_cast<PyObject*>(key);
}

PyObject* make_index(PyTypeObject* type, Py_ssize_t index) {
    Ref value = Ref::steal(PyLong_FromSsize_t(index));
    return value ? make_key(type, value.get()) : nullptr;
}

PyObject* value_of(PyObject* self) { return reinterpret_cast<KeyObject*>(self)->value; }

bool is_index_type(PyTypeObject* type) { return type == sequence_key_type || type == flat_index_key_type; }

const char* field_name(PyTypeObject* type) {
    return type == sequence_key_type ? "idx" : type == attr_key_type ? "name" : "key";
}

const char* short_name(PyTypeObject* type) {
    const char* dot = strrchr(type->tp_name, '.');
    return dot ? dot + 1 : type->tp_name;
}

PyObject* key_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    char field[8];
    strcpy(field, field_name(type));
    char* names[] = {field, nullptr};
    PyObject* value;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &value)) return nullptr;
    if (is_index_type(type)) {
        Ref index = Ref::steal(PyNumber_Index(value));
        if (!index) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
            PyErr_Clear();
            PyErr_Format(PyExc_TypeError, "%s: argument '%s' must be an int, got %R", short_name(type), field, value);
            return nullptr;
        }
        return make_key(type, index.get());
    }
    if (type == attr_key_type && !PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s: argument '%s' must be a str, got %R", short_name(type), field, value);
        return nullptr;
    }
    return make_key(type, value);
}

void key_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(reinterpret_cast<KeyObject*>(self)->value);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

int key_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(value_of(self));
    return 0;
}

PyObject* key_repr(PyObject* self) {
    return PyUnicode_FromFormat("%s(%s=%R)", short_name(Py_TYPE(self)), field_name(Py_TYPE(self)), value_of(self));
}

// How the entry looks in a key path.
PyObject* key_str(PyObject* self) {
    if (Py_TYPE(self) == attr_key_type) return PyUnicode_FromFormat(".%S", value_of(self));
    const char* format = Py_TYPE(self) == flat_index_key_type ? "[<flat index %S>]" : "[%R]";
    return PyUnicode_FromFormat(format, value_of(self));
}

PyObject* key_compare(PyObject* a, PyObject* b, int op) {
    if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    if (Py_TYPE(a) != Py_TYPE(b)) return PyBool_FromLong(op == Py_NE);
    int same = PyObject_RichCompareBool(value_of(a), value_of(b), Py_EQ);
    return same < 0 ? nullptr : PyBool_FromLong(same == (op == Py_EQ));
}

Py_hash_t key_hash(PyObject* self) { return PyObject_Hash(value_of(self)); }

PyObject* key_reduce(PyObject* self, PyObject*) { return Py_BuildValue("O(O)", Py_TYPE(self), value_of(self)); }

PyMethodDef key_methods[] = {
    {"__reduce__", key_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject* make_type(PyObject* module, const char* name, const char* field, const char* doc) {
    PyMemberDef members[] = {
        {field, T_OBJECT_EX, offsetof(KeyObject, value), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_new, reinterpret_cast<void*>(key_new)},
        {Py_tp_dealloc, reinterpret_cast<void*>(key_dealloc)},
        {Py_tp_traverse, reinterpret_cast<void*>(key_traverse)},
        {Py_tp_repr, reinterpret_cast<void*>(key_repr)},
        {Py_tp_str, reinterpret_cast<void*>(key_str)},
        {Py_tp_richcompare, reinterpret_cast<void*>(key_compare)},
        {Py_tp_hash, reinterpret_cast<void*>(key_hash)},
        {Py_tp_methods, key_methods},
        {Py_tp_members, members},
        {0, nullptr},
    };
    PyType_Spec spec = {name, sizeof(KeyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    Ref type = Ref::steal(PyType_FromSpec(&spec));
    Ref match = Ref::steal(Py_BuildValue("(s)", field));
    if (!type || !match || PyObject_SetAttrString(type.get(), "__match_args__", match.get()) < 0) return nullptr;
    if (PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type.get())) < 0) return nullptr;
    return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace

PyObject* make_dict_key(PyObject* key) { return make_key(dict_key_type, key); }
PyObject* make_attr_key(PyObject* name) { return make_key(attr_key_type, name); }
PyObject* make_flat_index_key(Py_ssize_t index) { return make_index(flat_index_key_type, index); }

PyObject* make_sequence_key(Py_ssize_t index) {
    if (index < 0 || index >= cached_indices) return make_index(sequence_key_type, index);
    if (!sequence_keys[index]) sequence_keys[index] = make_index(sequence_key_type, index);
    return Py_XNewRef(sequence_keys[index]);
}

bool init_keys(PyObject* module) {
    dict_key_type = make_type(module, "pullback.tree_util.DictKey", "key",
                              "DictKey(key)\n--\n\nKey path entry: the value stored under `key` of a dict.");
    sequence_key_type = make_type(module, "pullback.tree_util.SequenceKey", "idx",
                                  "SequenceKey(idx)\n--\n\nKey path entry: element `idx` of a list or tuple.");
    attr_key_type = make_type(module, "pullback.tree_util.GetAttrKey", "name",
                              "GetAttrKey(name)\n--\n\nKey path entry: the attribute `name` of an object.");
    flat_index_key_type =
        make_type(module, "pullback.tree_util.FlattenedIndexKey", "key",
                  "FlattenedIndexKey(key)\n--\n\nKey path entry: child number `key` of a node that names no keys.");
    return dict_key_type && sequence_key_type && attr_key_type && flat_index_key_type;
}

}  // namespace pb::pytree
