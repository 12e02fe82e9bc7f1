// The Python type PyTreeDef: methods, pickling, and structures made from parts.

#include <algorithm>
#include <climits>

#include "pytree/pytree.h"

namespace pb::pytree {

PyTypeObject* treedef_type;

namespace {

// Nodes under construction, freed unless `finish` is reached.
class NodeList {
  public:
    std::vector<Node> nodes;
    NodeList() = default;
    NodeList(const NodeList&) = delete;
    ~NodeList() {
        for (Node& node : nodes) Py_XDECREF(node.data);
    }
    void append(const Node* begin, const Node* end) {
        for (const Node* node = begin; node != end; ++node) nodes.push_back(copy_node(*node));
    }
    PyObject* finish() {
        PyTreeDefObject* treedef = make_treedef(nodes.data(), nodes.size());
        nodes.clear();
        return reinterpret_cast<PyObject*>(treedef);
    }
};

PyTreeDefObject* as_treedef(PyObject* self) { return reinterpret_cast<PyTreeDefObject*>(self); }

PyTreeDefObject* checked_treedef(const char* function, PyObject* object) {
    if (is_treedef(object)) return as_treedef(object);
    PyErr_Format(PyExc_TypeError, "%s: expected a PyTreeDef, got %R", function, object);
    return nullptr;
}

// Index of the first node of the subtree whose root is node `root`.
Py_ssize_t subtree_begin(const Node* nodes, Py_ssize_t root) { return root + 1 - Py_ssize_t(nodes[root].num_nodes); }

// What the user sees as the data of a node; new reference.
PyObject* visible_data(const Node& node) {
    if (node.kind == Kind::dict) return PySequence_List(node.data);
    return Py_NewRef(node.data ? node.data : Py_None);
}

PyObject* node_type(const Node& node) {
    switch (node.kind) {
    case Kind::none: return reinterpret_cast<PyObject*>(Py_TYPE(Py_None));
    case Kind::tuple: return reinterpret_cast<PyObject*>(&PyTuple_Type);
    case Kind::list: return reinterpret_cast<PyObject*>(&PyList_Type);
    case Kind::dict: return reinterpret_cast<PyObject*>(&PyDict_Type);
    case Kind::named_tuple: return node.data;
    case Kind::custom:
    case Kind::dataclass: return reinterpret_cast<PyObject*>(node.registration->type);
    case Kind::leaf: break;
    }
    return nullptr;
}

// The leaves in any iterable, at most one more than `count`: it may be endless.
bool take_leaves(PyObject* iterable, Py_ssize_t count, RefVector& out) {
    if (PyTuple_CheckExact(iterable) || PyList_CheckExact(iterable)) {
        Py_ssize_t size = std::min(count + 1, PySequence_Fast_GET_SIZE(iterable));
        for (Py_ssize_t i = 0; i < size; ++i) out.push(PySequence_Fast_GET_ITEM(iterable, i));
        return true;
    }
    Ref iterator = Ref::steal(PyObject_GetIter(iterable));
    if (!iterator) return false;
    while (Py_ssize_t(out.size()) <= count) {
        PyObject* leaf = PyIter_Next(iterator.get());
        if (!leaf) return !PyErr_Occurred();
        out.push_owned(leaf);
    }
    return true;
}

PyObject* treedef_unflatten(PyObject* self, PyObject* iterable) {
    PyTreeDefObject* treedef = as_treedef(self);
    RefVector leaves;
    if (!take_leaves(iterable, treedef->num_leaves(), leaves)) return nullptr;
    return unflatten(treedef, leaves.items.data(), leaves.size());
}

PyObject* treedef_flatten_up_to(PyObject* self, PyObject* tree) {
    PyTreeDefObject* treedef = as_treedef(self);
    RefVector found;
    if (!flatten_up_to(treedef->nodes, treedef->size(), tree, found)) return nullptr;
    PyObject* list = PyList_New(found.size());
    for (size_t i = 0; list && i < found.size(); ++i) PyList_SET_ITEM(list, i, Py_NewRef(found[i]));
    return list;
}

PyObject* treedef_children(PyObject* self, PyObject*) {
    PyTreeDefObject* treedef = as_treedef(self);
    const Node& root = treedef->root();
    Ref list = Ref::steal(PyList_New(root.arity));
    Py_ssize_t child = treedef->size() - 2;
    for (Py_ssize_t i = Py_ssize_t(root.arity) - 1; list && i >= 0; --i) {
        Py_ssize_t begin = subtree_begin(treedef->nodes, child);
        NodeList part;
        part.append(treedef->nodes + begin, treedef->nodes + child + 1);
        PyObject* made = part.finish();
        if (!made) return nullptr;
        PyList_SET_ITEM(list.get(), i, made);
        child = begin - 1;
    }
    return list.release();
}

PyObject* treedef_node_data(PyObject* self, PyObject*) {
    const Node& root = as_treedef(self)->root();
    if (root.kind == Kind::leaf) Py_RETURN_NONE;
    // The class of a named tuple is its type; there is nothing else to say about it.
    Ref data = root.kind == Kind::named_tuple ? Ref::borrow(Py_None) : Ref::steal(visible_data(root));
    return data ? PyTuple_Pack(2, node_type(root), data.get()) : nullptr;
}

PyObject* treedef_compose(PyObject* self, PyObject* argument) {
    PyTreeDefObject *outer = as_treedef(self), *inner = checked_treedef("compose", argument);
    if (!inner) return nullptr;
    NodeList result;
    for (Py_ssize_t i = 0; i < outer->size(); ++i) {
        const Node& node = outer->nodes[i];
        if (node.kind == Kind::leaf) {
            result.append(inner->nodes, inner->nodes + inner->size());
            continue;
        }
        Node copy = copy_node(node);
        uint64_t num_nodes = uint64_t(node.num_nodes) + uint64_t(node.num_leaves) * (inner->size() - 1);
        uint64_t num_leaves = uint64_t(node.num_leaves) * inner->num_leaves();
        copy.num_nodes = uint32_t(num_nodes);
        copy.num_leaves = uint32_t(num_leaves);
        result.nodes.push_back(copy);
        if (std::max(num_nodes, num_leaves) > UINT_MAX) {
            PyErr_SetString(PyExc_OverflowError, "compose: the result would have more than 2**32 - 1 nodes");
            return nullptr;
        }
    }
    return result.finish();
}

// Calls f_node(children, node_data) at every node and f_leaf at every leaf (None: leaves stay), children first.
PyObject* treedef_walk(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "walk: expected 3 arguments (f_node, f_leaf, leaves), got %zd", count);
        return nullptr;
    }
    PyObject *f_node = arguments[0], *f_leaf = arguments[1];
    Ref iterator = Ref::steal(PyObject_GetIter(arguments[2]));
    if (!iterator) return nullptr;
    PyTreeDefObject* treedef = as_treedef(self);
    RefVector stack;
    for (Py_ssize_t i = 0; i < treedef->size(); ++i) {
        const Node& node = treedef->nodes[i];
        PyObject* result;
        if (node.kind == Kind::leaf) {
            Ref leaf = Ref::steal(PyIter_Next(iterator.get()));
            if (!leaf) {
                if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "Too few leaves for PyTreeDef");
                return nullptr;
            }
            result = f_leaf == Py_None ? leaf.release() : PyObject_CallOneArg(f_leaf, leaf.get());
        } else {
            Ref children = Ref::steal(PyTuple_New(node.arity)), data = Ref::steal(visible_data(node));
            if (!children || !data) return nullptr;
            size_t first = stack.size() - node.arity;
            for (uint32_t k = 0; k < node.arity; ++k) PyTuple_SET_ITEM(children.get(), k, stack[first + k]);
            stack.items.resize(first);
            PyObject* pair[2] = {children.get(), data.get()};
            result = PyObject_Vectorcall(f_node, pair, 2, nullptr);
        }
        if (!result) return nullptr;
        stack.push_owned(result);
    }
    Ref extra = Ref::steal(PyIter_Next(iterator.get()));
    if (extra) PyErr_SetString(PyExc_ValueError, "Too many leaves for PyTreeDef");
    return PyErr_Occurred() ? nullptr : Py_NewRef(stack[0]);
}

// Rebuilds a tree of this structure from nested iterables, whatever their types.
PyObject* treedef_from_iterable_tree(PyObject* self, PyObject* tree) {
    PyTreeDefObject* treedef = as_treedef(self);
    RefVector leaves, agenda;
    leaves.items.resize(treedef->num_leaves(), nullptr);
    Py_ssize_t next = treedef->num_leaves();
    agenda.push(tree);
    for (Py_ssize_t i = treedef->size() - 1; i >= 0; --i) {
        Ref object = Ref::steal(agenda.items.back());
        agenda.items.pop_back();
        const Node& node = treedef->nodes[i];
        if (node.kind == Kind::leaf) {
            leaves.items[--next] = object.release();
            continue;
        }
        // None stands for itself as well as for an empty iterable.
        if (node.kind == Kind::none && object.get() == Py_None) continue;
        Ref children = Ref::steal(PySequence_Tuple(object.get()));
        if (!children) return nullptr;
        Py_ssize_t arity = PyTuple_GET_SIZE(children.get());
        if (arity != Py_ssize_t(node.arity)) {
            PyErr_Format(PyExc_ValueError, "Arity mismatch between trees: expected %u children, got %zd", node.arity, arity);
            return nullptr;
        }
        for (Py_ssize_t k = 0; k < arity; ++k) agenda.push(PyTuple_GET_ITEM(children.get(), k));
    }
    return unflatten(treedef, leaves.items.data(), leaves.size());
}

// ---- structures made from parts

// Makes `node` (kind and arity are set) consistent with `data` and `type`; false with an error set if that is impossible.
bool set_node_data(Node& node, PyObject* type, PyObject* data) {
    switch (node.kind) {
    case Kind::leaf:
    case Kind::none:
        if (node.arity) {
            PyErr_Format(PyExc_ValueError, "a PyTreeDef %s has no children, got %u",
                         node.kind == Kind::leaf ? "leaf" : "of None", node.arity);
            return false;
        }
        return true;
    case Kind::tuple:
    case Kind::list:
        return true;
    case Kind::dict:
        if (!PyTuple_Check(data) && !PyList_Check(data)) {
            PyErr_Format(PyExc_TypeError, "the node data of a dict must be the list of its keys, got %R", data);
            return false;
        }
        node.data = PySequence_Tuple(data);
        if (!node.data) return false;
        if (PyTuple_GET_SIZE(node.data) != Py_ssize_t(node.arity)) {
            PyErr_Format(PyExc_ValueError, "the numbers of keys and children of a dict differ: %zd keys, %u children",
                         PyTuple_GET_SIZE(node.data), node.arity);
            return false;
        }
        return true;
    case Kind::named_tuple:
        if (!PyType_Check(type) || !is_named_tuple_type(reinterpret_cast<PyTypeObject*>(type))) {
            PyErr_Format(PyExc_TypeError, "%R is not a named tuple class", type);
            return false;
        }
        node.data = Py_NewRef(type);
        return true;
    case Kind::custom:
    case Kind::dataclass: {
        const Registration* found =
            PyType_Check(type) ? find_registration(reinterpret_cast<PyTypeObject*>(type)) : nullptr;
        if (!found || found->kind != node.kind) {
            PyErr_Format(PyExc_ValueError, "the type %R is not registered as a pytree node here", type);
            return false;
        }
        PyObject* names = found->dict_keys && found->type != &PyODict_Type && PyTuple_Check(data) &&
                                  PyTuple_GET_SIZE(data) == 2 ? PyTuple_GET_ITEM(data, 1) : data;
        bool fits = found->dict_keys ? PyTuple_Check(names) && PyTuple_GET_SIZE(names) == Py_ssize_t(node.arity) &&
                                           (found->type == &PyODict_Type || names != data)
                    : found->kind == Kind::dataclass
                        ? PyTuple_Check(data) && size_t(PyTuple_GET_SIZE(data)) == found->meta_fields.size() &&
                              node.arity == found->data_fields.size()
                        : true;
        if (!fits) {
            PyErr_Format(PyExc_ValueError, "node data %R and %u children do not make a node of type %R", data, node.arity,
                         type);
            return false;
        }
        node.registration = found;
        node.data = Py_NewRef(data);
        return true;
    }
    }
    PyErr_Format(PyExc_ValueError, "unknown pytree node kind %d", int(node.kind));
    return false;
}

// Appends the parent of the last `arity` subtrees.
bool close_node(NodeList& list, Kind kind, Py_ssize_t arity, PyObject* type, PyObject* data) {
    uint64_t num_nodes = 1, num_leaves = kind == Kind::leaf;
    for (Py_ssize_t i = 0; i < arity; ++i) {
        Py_ssize_t child = Py_ssize_t(list.nodes.size()) - Py_ssize_t(num_nodes);
        if (child < 0) {
            PyErr_SetString(PyExc_ValueError, "a PyTreeDef node has more children than there are nodes before it");
            return false;
        }
        num_nodes += list.nodes[child].num_nodes;
        num_leaves += list.nodes[child].num_leaves;
    }
    if (num_nodes > UINT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a pytree can have at most 2**32 - 1 nodes");
        return false;
    }
    list.nodes.push_back({kind, uint32_t(arity), uint32_t(num_leaves), uint32_t(num_nodes), nullptr, nullptr});
    return set_node_data(list.nodes.back(), type, data);
}

bool append_treedefs(const char* function, PyObject* iterable, NodeList& list, Py_ssize_t* count) {
    Ref children = Ref::steal(PySequence_Tuple(iterable));
    if (!children) return false;
    *count = PyTuple_GET_SIZE(children.get());
    for (Py_ssize_t i = 0; i < *count; ++i) {
        PyTreeDefObject* child = checked_treedef(function, PyTuple_GET_ITEM(children.get(), i));
        if (!child) return false;
        list.append(child->nodes, child->nodes + child->size());
    }
    return true;
}

// (registry, node_data, children); the registry is the one there is.
PyObject* treedef_from_node_data(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (count != 3) {
        PyErr_Format(PyExc_TypeError,
                     "from_node_data_and_children: expected 3 arguments (registry, node_data, children), got %zd", count);
        return nullptr;
    }
    PyObject* node_data = arguments[1];
    bool leaf = node_data == Py_None;
    if (!leaf && (!PyTuple_Check(node_data) || PyTuple_GET_SIZE(node_data) != 2 ||
                  !PyType_Check(PyTuple_GET_ITEM(node_data, 0)))) {
        PyErr_Format(PyExc_TypeError, "from_node_data_and_children: argument 'node_data' (position 1) must be None (a leaf) "
                     "or a tuple (type, data), got %R", node_data);
        return nullptr;
    }
    NodeList list;
    Py_ssize_t arity;
    if (!append_treedefs("from_node_data_and_children", arguments[2], list, &arity)) return nullptr;
    PyObject* type = leaf ? Py_None : PyTuple_GET_ITEM(node_data, 0);
    auto* type_object = reinterpret_cast<PyTypeObject*>(type);
    const Registration* found = leaf ? nullptr : find_registration(type_object);
    Kind kind = leaf                               ? Kind::leaf
                : type_object == Py_TYPE(Py_None) ? Kind::none
                : type_object == &PyTuple_Type    ? Kind::tuple
                : type_object == &PyList_Type     ? Kind::list
                : type_object == &PyDict_Type     ? Kind::dict
                : found                            ? found->kind
                : is_named_tuple_type(type_object) ? Kind::named_tuple
                                                   : Kind::custom;
    if (!close_node(list, kind, arity, type, leaf ? Py_None : PyTuple_GET_ITEM(node_data, 1))) return nullptr;
    return list.finish();
}

// ---- pickling: the state is a list of (kind, arity, data, type), one per node.

PyObject* treedef_reduce(PyObject* self, PyObject*) {
    PyTreeDefObject* treedef = as_treedef(self);
    Ref state = Ref::steal(PyList_New(treedef->size()));
    for (Py_ssize_t i = 0; state && i < treedef->size(); ++i) {
        const Node& node = treedef->nodes[i];
        bool typed = node.registration || node.kind == Kind::named_tuple;
        PyObject* entry = Py_BuildValue("(iIOO)", int(node.kind), node.arity,
                                        node.data && node.kind != Kind::named_tuple ? node.data : Py_None,
                                        typed ? node_type(node) : Py_None);
        if (!entry) return nullptr;
        PyList_SET_ITEM(state.get(), i, entry);
    }
    Ref make = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(treedef_type), "_from_state"));
    return state && make ? Py_BuildValue("O(O)", make.get(), state.get()) : nullptr;
}

PyObject* treedef_from_state(PyObject*, PyObject* state) {
    Ref entries = Ref::steal(PySequence_Tuple(state));
    if (!entries) return nullptr;
    NodeList list;
    Py_ssize_t count = PyTuple_GET_SIZE(entries.get());
    for (Py_ssize_t i = 0; i < count; ++i) {
        int kind;
        Py_ssize_t arity;
        PyObject *data, *type;
        PyObject* entry = PyTuple_GET_ITEM(entries.get(), i);
        if (!PyTuple_Check(entry)) {
            PyErr_Format(PyExc_TypeError, "PyTreeDef state: expected a tuple (kind, arity, data, type), got %R", entry);
            return nullptr;
        }
        if (!PyArg_ParseTuple(entry, "inOO", &kind, &arity, &data, &type)) return nullptr;
        if (kind < 0 || kind > int(Kind::dataclass) || arity < 0 || arity > count) {
            PyErr_Format(PyExc_ValueError, "PyTreeDef state: entry %zd is damaged: %R", i, entry);
            return nullptr;
        }
        if (!close_node(list, Kind(kind), arity, type, data)) return nullptr;
    }
    if (list.nodes.empty() || list.nodes.back().num_nodes != list.nodes.size()) {
        PyErr_SetString(PyExc_ValueError, "PyTreeDef state: the nodes do not form one tree");
        return nullptr;
    }
    return list.finish();
}

PyObject* treedef_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

// ---- slots

PyObject* treedef_compare(PyObject* a, PyObject* b, int op) {
    if ((op != Py_EQ && op != Py_NE) || !is_treedef(b)) Py_RETURN_NOTIMPLEMENTED;
    int same = equal(as_treedef(a), as_treedef(b));
    return same < 0 ? nullptr : PyBool_FromLong(same == (op == Py_EQ));
}

Py_hash_t treedef_hash(PyObject* self) { return hash(as_treedef(self)); }

PyObject* treedef_repr_slot(PyObject* self) {
    PyTreeDefObject* treedef = as_treedef(self);
    return guarded<treedef_repr>(static_cast<const Node*>(treedef->nodes), treedef->size());
}

int treedef_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    PyTreeDefObject* treedef = as_treedef(self);
    for (Py_ssize_t i = 0; i < treedef->size(); ++i) Py_VISIT(treedef->nodes[i].data);
    return 0;
}

void treedef_dealloc(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, treedef_dealloc)
    PyTreeDefObject* treedef = as_treedef(self);
    for (Py_ssize_t i = 0; i < treedef->size(); ++i) Py_XDECREF(treedef->nodes[i].data);
    PyObject_GC_Del(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyObject* get_num_leaves(PyObject* self, void*) { return PyLong_FromSsize_t(as_treedef(self)->num_leaves()); }
PyObject* get_num_nodes(PyObject* self, void*) { return PyLong_FromSsize_t(as_treedef(self)->size()); }

PyGetSetDef properties[] = {
    {"num_leaves", get_num_leaves, nullptr, "Number of leaves.", nullptr},
    {"num_nodes", get_num_nodes, nullptr, "Number of nodes, leaves included.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

template <auto function>
PyCFunction one_argument() {
    return [](PyObject* self, PyObject* argument) { return guarded<function>(self, argument); };
}

template <auto function>
PyCFunction many_arguments() {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(
        +[](PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
            return guarded<function>(self, arguments, count);
        }));
}

PyMethodDef methods[] = {
    {"unflatten", one_argument<treedef_unflatten>(), METH_O,
     "unflatten($self, leaves, /)\n--\n\nThe tree of this structure with the given leaves (an iterable of num_leaves). "
     "ValueError if there are too few or too many."},
    {"flatten_up_to", one_argument<treedef_flatten_up_to>(), METH_O,
     "flatten_up_to($self, tree, /)\n--\n\nThe subtrees of `tree` at the places of this structure's leaves, as a list. "
     "ValueError if this structure is not a prefix of the tree."},
    {"children", one_argument<treedef_children>(), METH_NOARGS,
     "children($self, /)\n--\n\nThe structures of the root's children, as a list."},
    {"node_data", one_argument<treedef_node_data>(), METH_NOARGS,
     "node_data($self, /)\n--\n\nNone for a leaf, otherwise the root's (type, data): for a dict its ascending keys, for a "
     "registered class its aux data."},
    {"compose", one_argument<treedef_compose>(), METH_O,
     "compose($self, inner, /)\n--\n\nThis structure with `inner` in the place of every leaf."},
    {"walk", many_arguments<treedef_walk>(), METH_FASTCALL,
     "walk($self, f_node, f_leaf, leaves, /)\n--\n\nCalls f_leaf(leaf) at leaves (None: keeps them) and "
     "f_node(children, node_data) at nodes, children first; returns the value for the root."},
    {"from_iterable_tree", one_argument<treedef_from_iterable_tree>(), METH_O,
     "from_iterable_tree($self, tree, /)\n--\n\nThe tree of this structure with the leaves of `tree`, nested iterables of "
     "the same shape. ValueError if numbers of children differ."},
    {"from_node_data_and_children", many_arguments<treedef_from_node_data>(), METH_FASTCALL | METH_STATIC,
     "from_node_data_and_children(registry, node_data, children, /)\n--\n\nThe structure whose `node_data()` and "
     "`children()` are those given."},
    {"make_from_node_data_and_children", many_arguments<treedef_from_node_data>(), METH_FASTCALL | METH_STATIC,
     "make_from_node_data_and_children(registry, node_data, children, /)\n--\n\nOlder name of "
     "from_node_data_and_children."},
    {"_from_state", one_argument<treedef_from_state>(), METH_O | METH_STATIC, nullptr},
    {"__reduce__", one_argument<treedef_reduce>(), METH_NOARGS, nullptr},
    {"__copy__", treedef_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", treedef_copy, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

const char doc[] = "The structure of a pytree: what is left when its leaves are taken out. Immutable, hashable, comparable.";

}  // namespace

bool init_treedef_type(PyObject* module) {
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_dealloc, reinterpret_cast<void*>(treedef_dealloc)},
        {Py_tp_traverse, reinterpret_cast<void*>(treedef_traverse)},
        {Py_tp_repr, reinterpret_cast<void*>(treedef_repr_slot)},
        {Py_tp_richcompare, reinterpret_cast<void*>(treedef_compare)},
        {Py_tp_hash, reinterpret_cast<void*>(treedef_hash)},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {0, nullptr},
    };
    PyType_Spec spec = {"pullback.tree_util.PyTreeDef", int(offsetof(PyTreeDefObject, nodes)), int(sizeof(Node)),
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    treedef_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return treedef_type && PyModule_AddType(module, treedef_type) == 0;
}

PyObject* treedef_tuple(PyObject*, PyObject* iterable) {
    NodeList list;
    Py_ssize_t arity;
    if (!append_treedefs("treedef_tuple", iterable, list, &arity)) return nullptr;
    return close_node(list, Kind::tuple, arity, Py_None, Py_None) ? list.finish() : nullptr;
}

}  // namespace pb::pytree
