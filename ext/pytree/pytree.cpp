// Structures: rebuilding trees from them, matching, comparing, making and printing them. The contract is in pytree.h;
// flattening is in pytree_flatten.cpp, node types in pytree_registry.cpp, what Python sees in pytree_treedef.cpp and
// pytree_bind.cpp.
#include "pytree/pytree.h"

#include <string>

namespace pb::pytree {

namespace {

// -1 error (already wrapped), 0 different, 1 same
int same_data(PyObject* a, PyObject* b) {
    if (a == b) return 1;
    if (!a || !b) return 0;
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        raise_from(PyExc_ValueError,
                   "pytree nodes: comparing their metadata failed. Whether two are equal has to be True or False, and each "
                   "has a hash; arrays cannot be metadata.");
    }
    return same;
}

}  // namespace

void raise_from(PyObject* type, const char* message) {
    PyObject *cause_type, *cause, *traceback;
    PyErr_Fetch(&cause_type, &cause, &traceback);
    PyErr_NormalizeException(&cause_type, &cause, &traceback);
    if (traceback) PyException_SetTraceback(cause, traceback);
    Py_XDECREF(cause_type);
    Py_XDECREF(traceback);
    PyErr_SetString(type, message);
    PyObject *new_type, *error;
    PyErr_Fetch(&new_type, &error, &traceback);
    PyErr_NormalizeException(&new_type, &error, &traceback);
    if (error && cause) {
        PyException_SetCause(error, Py_NewRef(cause));
        PyException_SetContext(error, Py_NewRef(cause));
    }
    Py_XDECREF(cause);
    PyErr_Restore(new_type, error, traceback);
}
// ---- rebuilding

namespace {

// Takes the references of the `arity` children at `children` over, also when it fails.
PyObject* build_node(const Node& node, PyObject** children) {
    Py_ssize_t arity = node.arity;
    PyObject* result = nullptr;
    switch (node.kind) {
    case Kind::leaf:
        break;
    case Kind::none:
        return Py_NewRef(Py_None);
    case Kind::tuple:
    case Kind::list:
        result = node.kind == Kind::tuple ? PyTuple_New(arity) : PyList_New(arity);
        if (!result) break;
        for (Py_ssize_t i = 0; i < arity; ++i) {
            if (node.kind == Kind::tuple) PyTuple_SET_ITEM(result, i, children[i]);
            else PyList_SET_ITEM(result, i, children[i]);
        }
        return result;
    case Kind::dict:
        result = PyDict_New();
        for (Py_ssize_t i = 0; result && i < arity; ++i) {
            if (PyDict_SetItem(result, PyTuple_GET_ITEM(node.data, i), children[i]) < 0) Py_CLEAR(result);
        }
        break;
    case Kind::named_tuple:
        result = PyObject_Vectorcall(node.data, children, arity, nullptr);
        break;
    case Kind::custom: {
        if (node.registration->native_unflatten) {
            result = node.registration->native_unflatten(node.data, children, arity);
            break;
        }
        Ref tuple = Ref::steal(PyTuple_New(arity));
        if (!tuple) break;
        for (Py_ssize_t i = 0; i < arity; ++i) PyTuple_SET_ITEM(tuple.get(), i, children[i]);
        PyObject* arguments[2] = {node.data, tuple.get()};
        return PyObject_Vectorcall(node.registration->from_iterable, arguments, 2, nullptr);
    }
    case Kind::dataclass: {
        size_t meta = PyTuple_GET_SIZE(node.data);
        std::vector<PyObject*> arguments(children, children + arity);
        for (size_t i = 0; i < meta; ++i) arguments.push_back(PyTuple_GET_ITEM(node.data, i));
        result = PyObject_Vectorcall(reinterpret_cast<PyObject*>(node.registration->type), arguments.data(), 0,
                                     node.registration->keyword_names);
        break;
    }
    }
    for (Py_ssize_t i = 0; i < arity; ++i) Py_DECREF(children[i]);
    return result;
}

}  // namespace

PyObject* unflatten_nodes(const Node* nodes, Py_ssize_t num_nodes, PyObject* const* leaves) {
    if (num_nodes == 1 && nodes[0].kind == Kind::leaf) return Py_NewRef(leaves[0]);
    RefVector stack;
    std::vector<PyObject*> children;
    for (Py_ssize_t i = 0; i < num_nodes; ++i) {
        const Node& node = nodes[i];
        if (node.kind == Kind::leaf) {
            stack.push(*leaves++);
            continue;
        }
        // Off the stack before user code runs, so that a failure frees every reference once.
        size_t first = stack.size() - node.arity;
        children.assign(stack.items.begin() + first, stack.items.end());
        stack.items.resize(first);
        PyObject* result = build_node(node, children.data());
        if (!result) return nullptr;
        stack.push_owned(result);
    }
    PyObject* result = stack.items.back();
    stack.items.pop_back();
    return result;
}

PyObject* unflatten(const PyTreeDefObject* treedef, PyObject* const* leaves, Py_ssize_t count) {
    Py_ssize_t expected = treedef->num_leaves();
    if (count != expected) {
        if (count < expected) {
            PyErr_Format(PyExc_ValueError, "Too few leaves for PyTreeDef; expected %zd, got %zd", expected, count);
        } else {
            PyErr_Format(PyExc_ValueError, "Too many leaves for PyTreeDef; expected %zd.", expected);
        }
        return nullptr;
    }
    return unflatten_nodes(treedef->nodes, treedef->size(), leaves);
}

// ---- matching a tree against a structure

namespace {

bool wrong_type(const char* expected, PyObject* got) {
    PyErr_Format(PyExc_ValueError, "Expected %s, got %R.", expected, got);
    return false;
}

bool dict_mismatch(const Node& node, PyObject* dict) {
    std::vector<Item> items;
    if (!sorted_items(dict, items)) return false;
    Ref present = Ref::steal(PyList_New(items.size()));
    for (size_t i = 0; present && i < items.size(); ++i) PyList_SET_ITEM(present.get(), i, Py_NewRef(items[i].key));
    drop_items(items, 0);
    Ref expected = Ref::steal(PySequence_List(node.data));
    if (present && expected) {
        PyErr_Format(PyExc_ValueError, "Dict key mismatch; expected keys: %R; present keys: %R.", expected.get(),
                     present.get());
    }
    return false;
}

// Pushes the children of `object`, which must be a node like `node`.
bool expand_like(const Node& node, PyObject* object, RefVector& agenda) {
    switch (node.kind) {
    case Kind::leaf:
        return true;
    case Kind::none:
        if (object == Py_None) return true;
        PyErr_Format(PyExc_ValueError, "Expected None, got %R. (None is a node without leaves; flattened with "
                     "is_leaf=lambda x: x is None it is a leaf, which is a prefix of anything.)", object);
        return false;
    case Kind::tuple:
    case Kind::list: {
        bool tuple = node.kind == Kind::tuple;
        if (tuple ? !PyTuple_CheckExact(object) : !PyList_CheckExact(object)) {
            return wrong_type(tuple ? "tuple" : "list", object);
        }
        Py_ssize_t arity = PySequence_Fast_GET_SIZE(object);
        if (arity != Py_ssize_t(node.arity)) {
            PyErr_Format(PyExc_ValueError, "%s arity mismatch: %zd != %u; %s: %R.", tuple ? "Tuple" : "List", arity,
                         node.arity, tuple ? "tuple" : "list", object);
            return false;
        }
        for (Py_ssize_t i = 0; i < arity; ++i) agenda.push(PySequence_Fast_GET_ITEM(object, i));
        return true;
    }
    case Kind::named_tuple: {
        const Registration* registration = nullptr;
        if (classify(object, &registration) != Kind::named_tuple) return wrong_type("named tuple", object);
        Py_ssize_t arity = PyTuple_GET_SIZE(object);
        if (arity != Py_ssize_t(node.arity)) {
            PyErr_Format(PyExc_ValueError, "Named tuple arity mismatch: %zd != %u; tuple: %R.", arity, node.arity, object);
            return false;
        }
        if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != node.data) {
            PyErr_Format(PyExc_ValueError, "Named tuple type mismatch: expected type: %R, tuple: %R.", node.data, object);
            return false;
        }
        for (Py_ssize_t i = 0; i < arity; ++i) agenda.push(PyTuple_GET_ITEM(object, i));
        return true;
    }
    case Kind::dict: {
        if (!PyDict_CheckExact(object)) return wrong_type("dict", object);
        if (PyDict_GET_SIZE(object) != Py_ssize_t(node.arity)) return dict_mismatch(node, object);
        for (uint32_t i = 0; i < node.arity; ++i) {
            PyObject* value = PyDict_GetItemWithError(object, PyTuple_GET_ITEM(node.data, i));
            if (!value) return PyErr_Occurred() ? false : dict_mismatch(node, object);
            agenda.push(value);
        }
        return true;
    }
    default:
        break;
    }
    bool dataclass = node.kind == Kind::dataclass;
    if (Py_TYPE(object) != node.registration->type) {
        PyErr_Format(PyExc_ValueError, "Custom %snode type mismatch: expected type: %R, value: %R.",
                     dataclass ? "dataclass " : "", node.registration->type, object);
        return false;
    }
    PyObject *children_tuple, *aux_data;
    if (!flatten_custom(node.registration, object, &children_tuple, &aux_data)) return false;
    Ref children = Ref::steal(children_tuple), aux = Ref::steal(aux_data);
    int same = same_data(node.data, aux_data);
    if (same < 0) return false;
    if (!same) {
        PyErr_Format(PyExc_ValueError, "Mismatch custom %snode data: %R != %R; value: %R.", dataclass ? "dataclass " : "",
                     node.data, aux_data, object);
        return false;
    }
    Py_ssize_t arity = PyTuple_GET_SIZE(children_tuple);
    if (arity != Py_ssize_t(node.arity)) {
        PyErr_Format(PyExc_ValueError, "Custom type arity mismatch: %zd != %u; value: %R.", arity, node.arity, object);
        return false;
    }
    for (Py_ssize_t i = 0; i < arity; ++i) agenda.push(PyTuple_GET_ITEM(children_tuple, i));
    return true;
}

}  // namespace

bool flatten_up_to(const Node* nodes, Py_ssize_t num_nodes, PyObject* tree, RefVector& out) {
    size_t first = out.size(), next = first + nodes[num_nodes - 1].num_leaves;
    out.items.resize(next, nullptr);
    // Backwards: a parent comes before its children, and its last child right after it.
    RefVector agenda;
    agenda.push(tree);
    for (Py_ssize_t i = num_nodes - 1; i >= 0; --i) {
        PyObject* object = agenda.items.back();
        agenda.items.pop_back();
        if (nodes[i].kind == Kind::leaf) {
            out.items[--next] = object;
            continue;
        }
        Ref owner = Ref::steal(object);
        if (!expand_like(nodes[i], object, agenda)) {
            // Leave only what was there before.
            RefVector partial;
            partial.items.assign(out.items.begin() + first, out.items.end());
            out.items.resize(first);
            return false;
        }
    }
    return true;
}

// ---- comparing

int equal_node(const Node& a, const Node& b) {
    if (a.kind != b.kind || a.arity != b.arity || a.registration != b.registration) return 0;
    if (a.data == b.data) return 1;
    if (a.kind == Kind::named_tuple) return 0;
    return same_data(a.data, b.data);
}

int equal_nodes(const Node* a, const Node* b, Py_ssize_t count) {
    for (Py_ssize_t i = count - 1; i >= 0; --i) {  // from the root: differences are found early
        if (a[i].num_nodes != b[i].num_nodes) return 0;
        int same = equal_node(a[i], b[i]);
        if (same != 1) return same;
    }
    return 1;
}

int equal(const PyTreeDefObject* a, const PyTreeDefObject* b) {
    if (a == b) return 1;
    if (a->size() != b->size() || a->num_leaves() != b->num_leaves()) return 0;
    return equal_nodes(a->nodes, b->nodes, a->size());
}

Py_hash_t hash(PyTreeDefObject* treedef) {
    if (treedef->hash != -1) return treedef->hash;
    uint64_t state = 0x9e3779b97f4a7c15u;
    auto mix = [&state](uint64_t value) { state = (state ^ value) * 0xff51afd7ed558ccdu, state ^= state >> 32; };
    for (Py_ssize_t i = 0; i < treedef->size(); ++i) {
        const Node& node = treedef->nodes[i];
        mix(uint64_t(node.kind) | uint64_t(node.arity) << 8);
        mix(reinterpret_cast<uintptr_t>(node.registration));
        if (!node.data) continue;
        Py_hash_t part = PyObject_Hash(node.data);
        if (part == -1) {
            // Metadata should be hashable; where it is not, equality alone decides.
            if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
            PyErr_Clear();
        } else {
            mix(uint64_t(part));
        }
    }
    Py_hash_t result = Py_hash_t(state);
    return treedef->hash = result == -1 ? -2 : result;
}

// ---- making treedefs

namespace {

constexpr size_t intern_slots = 512;
constexpr Py_ssize_t intern_max_nodes = 64;
PyTreeDefObject* interned[intern_slots];  // strong

// Structures that hold nothing that could keep a user's objects alive may be interned. 0: must not be.
uint64_t identity_hash(const Node* nodes, Py_ssize_t count) {
    uint64_t state = uint64_t(count) + 1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        const Node& node = nodes[i];
        state = (state ^ (uint64_t(node.kind) | uint64_t(node.arity) << 8)) * 0xff51afd7ed558ccdu;
        if (node.kind == Kind::dict) {
            for (uint32_t k = 0; k < node.arity; ++k) {
                PyObject* key = PyTuple_GET_ITEM(node.data, k);
                if (!PyUnicode_CheckExact(key)) return 0;
                state = (state ^ reinterpret_cast<uintptr_t>(key)) * 0xff51afd7ed558ccdu;
            }
        } else if (node.data || node.registration) {
            return 0;
        }
        state ^= state >> 32;
    }
    return state | 1;
}

bool identical(const Node* a, const Node* b, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (a[i].kind != b[i].kind || a[i].arity != b[i].arity) return false;
        for (uint32_t k = 0; a[i].kind == Kind::dict && k < a[i].arity; ++k) {
            if (PyTuple_GET_ITEM(a[i].data, k) != PyTuple_GET_ITEM(b[i].data, k)) return false;
        }
    }
    return true;
}

}  // namespace

PyTreeDefObject* make_treedef(Node* nodes, Py_ssize_t count) {
    uint64_t identity = count <= intern_max_nodes ? identity_hash(nodes, count) : 0;
    PyTreeDefObject** slot = identity ? &interned[(identity >> 1) % intern_slots] : nullptr;
    if (slot && *slot && (*slot)->size() == count && identical(nodes, (*slot)->nodes, count)) {
        PyTreeDefObject* found = *slot;
        Py_INCREF(found);
        for (Py_ssize_t i = 0; i < count; ++i) Py_XDECREF(nodes[i].data);
        return found;
    }
    auto* treedef = PyObject_GC_NewVar(PyTreeDefObject, treedef_type, count);
    if (!treedef) {
        for (Py_ssize_t i = 0; i < count; ++i) Py_XDECREF(nodes[i].data);
        return nullptr;
    }
    treedef->hash = -1;
    std::copy(nodes, nodes + count, treedef->nodes);
    if (identity) {  // cannot be part of a reference cycle, so the collector need not see it
        PyTreeDefObject* old = *slot;
        Py_INCREF(treedef);
        *slot = treedef;
        Py_XDECREF(old);
    } else {
        PyObject_GC_Track(treedef);
    }
    return treedef;
}

// ---- printing

namespace {

// Appends str(object) or repr(object).
bool append_text(PyObject* object, bool quoted, std::string& out) {
    Ref text = Ref::steal(quoted ? PyObject_Repr(object) : PyObject_Str(object));
    if (!text) return false;
    Py_ssize_t size;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.get(), &size);
    if (!bytes) return false;
    out.append(bytes, size);
    return true;
}

bool append_class_name(PyObject* type, std::string& out) {
    Ref name = Ref::steal(PyObject_GetAttrString(type, "__name__"));
    return name && append_text(name.get(), false, out);
}

// What stands before and after the children of a node.
bool brackets(const Node& node, std::string& open, std::string& close) {
    switch (node.kind) {
    case Kind::leaf: open = "*"; return true;
    case Kind::none: open = "None"; return true;
    case Kind::tuple: open = "(", close = node.arity == 1 ? ",)" : ")"; return true;
    case Kind::list: open = "[", close = "]"; return true;
    case Kind::dict: open = "{", close = "}"; return true;
    case Kind::named_tuple:
        open = "CustomNode(namedtuple[";
        if (!append_class_name(node.data, open)) return false;
        break;
    case Kind::custom:
    case Kind::dataclass:
        open = "CustomNode(";
        if (!append_class_name(reinterpret_cast<PyObject*>(node.registration->type), open)) return false;
        open += "[";
        if (!append_text(node.data, false, open)) return false;
        break;
    }
    open += "], [";
    close = "])";
    return true;
}

}  // namespace

PyObject* treedef_repr(const Node* nodes, Py_ssize_t count) {
    struct Task {
        Py_ssize_t node;   // -1: only the text
        std::string text;  // printed before the node
    };
    std::string out = "PyTreeDef(";
    std::vector<Task> tasks;
    tasks.push_back({count - 1, ""});
    while (!tasks.empty()) {
        Task task = std::move(tasks.back());
        tasks.pop_back();
        out += task.text;
        if (task.node < 0) continue;
        const Node& node = nodes[task.node];
        std::string open, close;
        if (!brackets(node, open, close)) return nullptr;
        out += open;
        tasks.push_back({-1, std::move(close)});
        Py_ssize_t child = task.node - 1;
        for (uint32_t k = node.arity; k-- > 0;) {  // the first child ends on top
            std::string before = k ? ", " : "";
            if (node.kind == Kind::dict) {
                if (!append_text(PyTuple_GET_ITEM(node.data, k), true, before)) return nullptr;
                before += ": ";
            }
            tasks.push_back({child, std::move(before)});
            child -= nodes[child].num_nodes;
        }
    }
    out += ")";
    return PyUnicode_DecodeUTF8(out.data(), out.size(), nullptr);
}

}  // namespace pb::pytree
