// Functions of the submodule `_core.pytree`. Arguments are positional and complete; the Python face, util/pytree.py,
// has the signatures and the documentation.
#include "pytree/pytree.h"

namespace pb::pytree {

PyObject* treedef_tuple(PyObject*, PyObject* iterable);  // pytree_treedef.cpp

namespace {

PyObject* optional(PyObject* argument) { return argument == Py_None ? nullptr : argument; }

bool expect(const char* function, Py_ssize_t count, Py_ssize_t expected) {
    if (count == expected) return true;
    PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", function, expected, count);
    return false;
}

bool expect_predicate(PyObject* is_leaf) {
    if (is_leaf == Py_None || PyCallable_Check(is_leaf)) return true;
    PyErr_Format(PyExc_TypeError, "argument 'is_leaf' is %R; expected a callable or None", is_leaf);
    return false;
}

PyObject* to_list(RefVector& refs) {
    PyObject* list = PyList_New(refs.size());
    if (!list) return nullptr;
    for (size_t i = 0; i < refs.size(); ++i) PyList_SET_ITEM(list, i, refs[i]);
    refs.items.clear();  // the list owns them now
    return list;
}

bool run(Flattener& flattener, PyObject* tree, PyObject* is_leaf) {
    if (!expect_predicate(is_leaf)) return false;
    flattener.is_leaf = optional(is_leaf);
    return flattener.flatten(tree);
}

PyObject* pair_of(PyObject* first, PyObject* second) {  // takes both over
    Ref a = Ref::steal(first), b = Ref::steal(second);
    return a && b ? PyTuple_Pack(2, a.get(), b.get()) : nullptr;
}

// flatten(tree, is_leaf, none_is_leaf) -> (leaves, treedef)
PyObject* py_flatten(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("flatten", count, 3)) return nullptr;
    Flattener flattener;
    flattener.none_is_leaf = args[2] == Py_True;
    if (!run(flattener, args[0], args[1])) return nullptr;
    PyObject* treedef = reinterpret_cast<PyObject*>(flattener.finish());
    return pair_of(to_list(flattener.leaf_refs()), treedef);
}

// leaves(tree, is_leaf)
PyObject* py_leaves(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("leaves", count, 2)) return nullptr;
    Flattener flattener;
    return run(flattener, args[0], args[1]) ? to_list(flattener.leaf_refs()) : nullptr;
}

// structure(tree, is_leaf)
PyObject* py_structure(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("structure", count, 2)) return nullptr;
    Flattener flattener;
    return run(flattener, args[0], args[1]) ? reinterpret_cast<PyObject*>(flattener.finish()) : nullptr;
}

// all_leaves(iterable, is_leaf)
PyObject* py_all_leaves(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("all_leaves", count, 2) || !expect_predicate(args[1])) return nullptr;
    Ref iterator = Ref::steal(PyObject_GetIter(args[0]));
    if (!iterator) return nullptr;
    PyObject* is_leaf = optional(args[1]);
    while (PyObject* next = PyIter_Next(iterator.get())) {
        Ref object = Ref::steal(next);
        int leaf = is_leaf ? stops_at(is_leaf, nullptr, next) : 0;
        const Registration* registration = nullptr;
        if (leaf == 0) leaf = classify(next, &registration) == Kind::leaf;
        if (leaf < 0) return nullptr;
        if (leaf == 0) Py_RETURN_FALSE;
    }
    return PyErr_Occurred() ? nullptr : Py_NewRef(Py_True);
}

// ---- key paths

// Like Flattener, but keeps the keys on the way from the root. Slower: used for messages and by users who ask for paths.
class PathFlattener {
  public:
    PyObject* is_leaf = nullptr;
    bool takes_path = false;
    RefVector found;  // (path, leaf) tuples

    bool visit(PyObject* object, std::vector<Node>& nodes) {
        if (is_leaf) {
            Ref path = takes_path ? Ref::steal(current_path()) : Ref();
            if (takes_path && !path) return false;
            int stop = stops_at(is_leaf, path.get(), object);
            if (stop < 0) return false;
            if (stop) return add_leaf(object, nodes);
        }
        const Registration* registration = nullptr;
        Kind kind = classify(object, &registration);
        if (kind == Kind::leaf) return add_leaf(object, nodes);
        if (Py_EnterRecursiveCall(" while flattening a pytree; it may contain itself")) return false;
        bool ok = ++depth_ <= max_depth && visit_children(object, kind, registration, nodes);
        if (depth_ > max_depth) PyErr_SetString(PyExc_RecursionError, "maximum pytree depth exceeded");
        --depth_;
        Py_LeaveRecursiveCall();
        return ok;
    }

  private:
    int depth_ = 0;
    std::vector<PyObject*> path_;  // borrowed from the Levels being visited

    PyObject* current_path() {
        PyObject* path = PyTuple_New(path_.size());
        for (size_t i = 0; path && i < path_.size(); ++i) PyTuple_SET_ITEM(path, i, Py_NewRef(path_[i]));
        return path;
    }

    bool add_leaf(PyObject* object, std::vector<Node>& nodes) {
        PyObject* entry = pair_of(current_path(), Py_NewRef(object));
        if (!entry) return false;
        found.push_owned(entry);
        nodes.push_back({Kind::leaf, 0, 1, 1, nullptr, nullptr});
        return true;
    }

    bool visit_children(PyObject* object, Kind kind, const Registration* registration, std::vector<Node>& nodes) {
        Level level;
        if (!open_node(object, kind, registration, true, level)) return false;
        size_t first_leaf = found.size(), first_node = nodes.size(), arity = level.children.size();
        for (size_t i = 0; i < arity; ++i) {
            path_.push_back(level.keys[i]);
            bool ok = visit(level.children[i], nodes);
            path_.pop_back();
            if (!ok) return false;
        }
        nodes.push_back({kind, uint32_t(arity), uint32_t(found.size() - first_leaf),
                         uint32_t(nodes.size() - first_node + 1), level.data.release(), registration});
        return true;
    }
};

// flatten_with_path(tree, is_leaf, is_leaf_takes_path) -> ([(path, leaf), ...], treedef)
PyObject* py_flatten_with_path(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("flatten_with_path", count, 3) || !expect_predicate(args[1])) return nullptr;
    int takes_path = PyObject_IsTrue(args[2]);
    if (takes_path < 0) return nullptr;
    PathFlattener flattener;
    flattener.is_leaf = optional(args[1]);
    flattener.takes_path = takes_path;
    struct Nodes {
        std::vector<Node> list;
        ~Nodes() {
            for (Node& node : list) Py_XDECREF(node.data);
        }
    } nodes;
    if (!flattener.visit(args[0], nodes.list)) return nullptr;
    PyObject* treedef = reinterpret_cast<PyObject*>(make_treedef(nodes.list.data(), nodes.list.size()));
    nodes.list.clear();
    return pair_of(to_list(flattener.found), treedef);
}

// ---- mapping

// tree_map(f, tree, rest, is_leaf, explain). When an element of the tuple `rest` does not match the tree,
// explain(tree, element, is_leaf) is called, to raise a better error; if it returns, the plain one is raised.
PyObject* py_tree_map(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("tree_map", count, 5)) return nullptr;
    PyObject *f = args[0], *rest = args[2];
    Flattener flattener;
    if (!run(flattener, args[1], args[3])) return nullptr;
    size_t num_leaves = flattener.leaves().size(), width = PyTuple_GET_SIZE(rest);
    const std::vector<Node>& nodes = flattener.nodes();
    RefVector others;  // the leaves of all of `rest`, tree after tree
    for (size_t i = 0; i < width; ++i) {
        if (flatten_up_to(nodes.data(), nodes.size(), PyTuple_GET_ITEM(rest, i), others)) continue;
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) return nullptr;
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject* explained = PyObject_CallFunctionObjArgs(args[4], args[1], PyTuple_GET_ITEM(rest, i), args[3], nullptr);
        if (explained) {
            Py_DECREF(explained);
            PyErr_Restore(type, value, traceback);
        } else {
            Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
        }
        return nullptr;
    }
    std::vector<PyObject*> arguments(width + 2);  // the slot before the first argument is for the callee's use
    RefVector results;
    results.items.reserve(num_leaves);
    for (size_t i = 0; i < num_leaves; ++i) {
        arguments[1] = flattener.leaves()[i];
        for (size_t k = 0; k < width; ++k) arguments[2 + k] = others[k * num_leaves + i];
        PyObject* result =
            PyObject_Vectorcall(f, arguments.data() + 1, (width + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
        if (!result) return nullptr;
        results.push_owned(result);
    }
    return unflatten_nodes(nodes.data(), nodes.size(), results.items.data());
}

// broadcast(prefix_leaves, prefix_treedef, treedef) -> list: every prefix leaf as often as the subtree in its place has
// leaves; None if the first structure is not a prefix of the second.
PyObject* py_broadcast(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("broadcast", count, 3)) return nullptr;
    if (!PyList_Check(args[0]) || !is_treedef(args[1]) || !is_treedef(args[2])) {
        PyErr_SetString(PyExc_TypeError, "broadcast: expected a list and two PyTreeDefs");
        return nullptr;
    }
    auto* prefix = reinterpret_cast<PyTreeDefObject*>(args[1]);
    auto* full = reinterpret_cast<PyTreeDefObject*>(args[2]);
    if (PyList_GET_SIZE(args[0]) != prefix->num_leaves()) {
        PyErr_Format(PyExc_ValueError, "broadcast: the prefix structure has %zd leaves, got %zd", prefix->num_leaves(),
                     PyList_GET_SIZE(args[0]));
        return nullptr;
    }
    // Both in reverse post-order; a leaf of the prefix skips a whole subtree. `repeats` is filled from its end.
    std::vector<uint32_t> repeats(prefix->num_leaves());
    size_t leaf = repeats.size();
    Py_ssize_t position = full->size() - 1;
    for (Py_ssize_t i = prefix->size() - 1; i >= 0; --i) {
        if (prefix->nodes[i].kind == Kind::leaf) {
            const Node& subtree = full->nodes[position];
            repeats[--leaf] = subtree.num_leaves;
            position -= subtree.num_nodes;
            continue;
        }
        int same = equal_node(prefix->nodes[i], full->nodes[position]);
        if (same < 0) return nullptr;
        if (!same) Py_RETURN_NONE;
        --position;
    }
    PyObject* result = PyList_New(full->num_leaves());
    if (!result) return nullptr;
    Py_ssize_t next = 0;
    for (size_t i = 0; i < repeats.size(); ++i) {
        PyObject* value = PyList_GET_ITEM(args[0], i);
        for (uint32_t k = 0; k < repeats[i]; ++k) PyList_SET_ITEM(result, next++, Py_NewRef(value));
    }
    return result;
}

// ---- one level and registration

// one_level(object, with_keys) -> (children, data), or None for a leaf; children are (key, child) pairs if with_keys.
PyObject* py_one_level(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("one_level", count, 2)) return nullptr;
    const Registration* registration = nullptr;
    Kind kind = classify(args[0], &registration);
    if (kind == Kind::leaf) Py_RETURN_NONE;
    Level level;
    bool with_keys = args[1] == Py_True;
    if (!open_node(args[0], kind, registration, with_keys, level)) return nullptr;
    RefVector children;
    for (size_t i = 0; i < level.children.size(); ++i) {
        PyObject* child = with_keys ? PyTuple_Pack(2, level.keys[i], level.children[i]) : Py_NewRef(level.children[i]);
        if (!child) return nullptr;
        children.push_owned(child);
    }
    Ref list = Ref::steal(to_list(children));
    bool as_tuple = kind == Kind::tuple || kind == Kind::dict || kind == Kind::none;
    Ref sequence = list && as_tuple ? Ref::steal(PyList_AsTuple(list.get())) : list;
    return sequence ? PyTuple_Pack(2, sequence.get(), level.data ? level.data.get() : Py_None) : nullptr;
}

PyObject* py_is_node(PyObject*, PyObject* type) {
    if (!PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "is_tree_node: expected a type, got %R", type);
        return nullptr;
    }
    auto* object = reinterpret_cast<PyTypeObject*>(type);
    return PyBool_FromLong(object == &PyTuple_Type || object == &PyList_Type || object == &PyDict_Type ||
                           object == Py_TYPE(Py_None) || find_registration(object) || is_named_tuple_type(object));
}

bool expect_class(const char* function, PyObject* type) {
    if (PyType_Check(type)) return true;
    PyErr_Format(PyExc_TypeError, "%s: argument 'nodetype' (position 0) must be a class, got %R", function, type);
    return false;
}

// register_node(type, to_iterable, from_iterable, to_iterable_with_keys or None)
PyObject* py_register_node(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("register_node", count, 4) || !expect_class("register_pytree_node", args[0])) return nullptr;
    const char* roles[] = {"flatten_func", "unflatten_func", "flatten_with_keys_func"};
    for (int i = 0; i < 3; ++i) {
        if (PyCallable_Check(args[i + 1]) || (i == 2 && args[3] == Py_None)) continue;
        PyErr_Format(PyExc_TypeError, "register_pytree_node: argument '%s' (position %d) must be callable, got %R",
                     roles[i], i + 1, args[i + 1]);
        return nullptr;
    }
    auto* made = new Registration{.type = reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0])), .kind = Kind::custom};
    made->to_iterable = Py_NewRef(args[1]);
    made->from_iterable = Py_NewRef(args[2]);
    made->with_keys = Py_XNewRef(optional(args[3]));
    if (!add_registration(made)) return nullptr;
    Py_RETURN_NONE;
}

// register_dataclass_node(type, data_fields, meta_fields): sequences of str
PyObject* py_register_dataclass(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (!expect("register_dataclass_node", count, 3) || !expect_class("register_dataclass", args[0])) return nullptr;
    Ref fields[2] = {Ref::steal(PySequence_Tuple(args[1])), Ref()};
    if (!fields[0]) return nullptr;
    fields[1] = Ref::steal(PySequence_Tuple(args[2]));
    if (!fields[1]) return nullptr;
    for (Ref& names : fields) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
            if (PyUnicode_Check(PyTuple_GET_ITEM(names.get(), i))) continue;
            PyErr_Format(PyExc_TypeError, "register_dataclass: field names must be str, got %R",
                         PyTuple_GET_ITEM(names.get(), i));
            return nullptr;
        }
    }
    Ref all = Ref::steal(PySequence_Concat(fields[0].get(), fields[1].get()));
    if (!all) return nullptr;
    auto* made = new Registration{.type = reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0])), .kind = Kind::dataclass};
    made->keyword_names = all.release();
    for (int k = 0; k < 2; ++k) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields[k].get()); ++i) {
            PyObject* name = Py_NewRef(PyTuple_GET_ITEM(fields[k].get(), i));
            PyUnicode_InternInPlace(&name);
            (k ? made->meta_fields : made->data_fields).push_back(name);
        }
    }
    if (!add_registration(made)) return nullptr;
    return Py_NewRef(args[0]);
}

template <auto function>
PyCFunction entry() {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(
        +[](PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
            return guarded<function>(self, arguments, count);
        }));
}

PyObject* guarded_treedef_tuple(PyObject* self, PyObject* iterable) { return guarded<treedef_tuple>(self, iterable); }

}  // namespace

PyMethodDef functions[] = {
    {"flatten", entry<py_flatten>(), METH_FASTCALL, nullptr},
    {"leaves", entry<py_leaves>(), METH_FASTCALL, nullptr},
    {"structure", entry<py_structure>(), METH_FASTCALL, nullptr},
    {"all_leaves", entry<py_all_leaves>(), METH_FASTCALL, nullptr},
    {"flatten_with_path", entry<py_flatten_with_path>(), METH_FASTCALL, nullptr},
    {"tree_map", entry<py_tree_map>(), METH_FASTCALL, nullptr},
    {"broadcast", entry<py_broadcast>(), METH_FASTCALL, nullptr},
    {"one_level", entry<py_one_level>(), METH_FASTCALL, nullptr},
    {"is_node", py_is_node, METH_O, nullptr},
    {"register_node", entry<py_register_node>(), METH_FASTCALL, nullptr},
    {"register_dataclass_node", entry<py_register_dataclass>(), METH_FASTCALL, nullptr},
    {"treedef_tuple", guarded_treedef_tuple, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace pb::pytree

void bind_pytree(nanobind::module_& module) {
    namespace pytree = pb::pytree;
    nanobind::module_ part = module.def_submodule("pytree", "Pytrees: flattening, structures, registration.");
    PyObject* target = part.ptr();
    if (!pytree::init_keys(target) || !pytree::init_treedef_type(target) || !pytree::init_registry() ||
        PyModule_AddFunctions(target, pytree::functions) < 0) {
        throw nanobind::python_error();
    }
}
