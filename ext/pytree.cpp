// Flattening, rebuilding and comparing structures. The contract is in pytree.h; types and functions seen from Python are
// in pytree_bind.cpp, node types in pytree_registry.cpp.
#include "pytree.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <string>

namespace pb::pytree {

// Working memory of a Flattener. It is recycled: growing fresh vectors costs more than flattening a small tree.
struct Buffers {
    RefVector leaves;
    std::vector<Node> nodes;
    std::vector<Item> items; // a stack of the dict items being visited
};

namespace {

// Deeper trees than this are refused even if the user raised the recursion limit: the C stack is finite.
constexpr int max_depth = 5000;
constexpr size_t pool_size = 8;
constexpr size_t pooled_capacity = 1 << 16;

// Guarded by the GIL. Never destroyed: flatteners may be used while the interpreter shuts down.
std::vector<Buffers*>& pool() {
    static auto* buffers = new std::vector<Buffers*>;
    return *buffers;
}

void drop_nodes(std::vector<Node>& nodes, size_t from) {
    while (nodes.size() > from) {
        PyObject* data = nodes.back().data;
        nodes.pop_back();
        Py_XDECREF(data);
    }
}

void drop_items(std::vector<Item>& items, size_t from) {
    while (items.size() > from) {
        Item item = items.back();
        items.pop_back();
        Py_DECREF(item.key);
        Py_DECREF(item.value);
    }
}

// -1 error (already wrapped), 0 different, 1 same
int same_data(PyObject* a, PyObject* b) {
    if (a == b) return 1;
    if (!a || !b) return 0;
    int same = PyObject_RichCompareBool(a, b, Py_EQ);
    if (same < 0 && PyErr_ExceptionMatches(PyExc_Exception)) {
        raise_from(PyExc_ValueError,
                   "Exception raised while checking equality of metadata fields of pytree nodes. Metadata (aux data) must "
                   "be hashable and compare with a plain True or False; arrays cannot be metadata.");
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

int stops_at(PyObject* is_leaf, PyObject* path, PyObject* object) {
    PyObject* arguments[2] = {path ? path : object, object};
    Ref answer = Ref::steal(PyObject_Vectorcall(is_leaf, arguments, path ? 2 : 1, nullptr));
    if (!answer) return -1;
    if (answer.get() == Py_True) return 1;
    if (answer.get() == Py_False || answer.get() == Py_None) return 0;
    PyErr_Format(PyExc_ValueError, "is_leaf predicate returned a non-boolean value %R; expected a boolean", answer.get());
    return -1;
}

// ---- Flattener

Flattener::Flattener() {
    if (pool().empty()) {
        buffers_ = new Buffers;
    } else {
        buffers_ = pool().back();
        pool().pop_back();
    }
}

Flattener::~Flattener() {
    buffers_->leaves.clear();
    drop_nodes(buffers_->nodes, 0);
    drop_items(buffers_->items, 0);
    bool large = std::max(buffers_->nodes.capacity(), buffers_->items.capacity()) > pooled_capacity;
    if (pool().size() < pool_size && !large) pool().push_back(buffers_);
    else delete buffers_;
}

const std::vector<PyObject*>& Flattener::leaves() const { return buffers_->leaves.items; }
RefVector& Flattener::leaf_refs() { return buffers_->leaves; }
const std::vector<Node>& Flattener::nodes() const { return buffers_->nodes; }

bool Flattener::flatten(PyObject* tree) { return visit(tree); }

inline void Flattener::visit_leaf(PyObject* object) {
    buffers_->leaves.push(object);
    buffers_->nodes.push_back({Kind::leaf, 0, 1, 1, nullptr, nullptr});
}

bool Flattener::visit(PyObject* object) {
    if (is_leaf) {
        int stop = stops_at(is_leaf, nullptr, object);
        if (stop < 0) return false;
        if (stop) {
            visit_leaf(object);
            return true;
        }
    }
    const Registration* registration = nullptr;
    Kind kind = classify(object, &registration);
    if (kind == Kind::leaf || (kind == Kind::none && none_is_leaf)) {
        visit_leaf(object);
        return true;
    }
    if (kind == Kind::none) {
        buffers_->nodes.push_back({Kind::none, 0, 0, 1, nullptr, nullptr});
        return true;
    }
    return visit_node(object, kind, registration);
}

bool Flattener::visit_node(PyObject* object, Kind kind, const Registration* registration) {
    static const char where[] = " while flattening a pytree; it may contain itself";
    if (depth_ >= max_depth) {
        PyErr_Format(PyExc_RecursionError, "maximum pytree depth of %d exceeded%s", max_depth, where);
        return false;
    }
    if (Py_EnterRecursiveCall(where)) return false;
    ++depth_;
    size_t first_leaf = buffers_->leaves.size(), first_node = buffers_->nodes.size(), arity = 0;
    PyObject* data = nullptr;  // owned
    bool ok = true;
    switch (kind) {
    case Kind::tuple:
    case Kind::named_tuple:
        arity = PyTuple_GET_SIZE(object);
        for (size_t i = 0; ok && i < arity; ++i) ok = visit(PyTuple_GET_ITEM(object, i));
        if (kind == Kind::named_tuple) data = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(object)));
        break;
    case Kind::list:
        arity = PyList_GET_SIZE(object);
        for (size_t i = 0; ok && i < arity; ++i) {
            if (size_t(PyList_GET_SIZE(object)) != arity) break;
            Ref child = Ref::borrow(PyList_GET_ITEM(object, i));
            ok = visit(child.get());
        }
        // User code (is_leaf, to_iterable) may have changed the list.
        if (ok && size_t(PyList_GET_SIZE(object)) != arity) {
            PyErr_SetString(PyExc_RuntimeError, "list changed size while it was being flattened as a pytree");
            ok = false;
        }
        break;
    case Kind::dict:
        ok = visit_dict(object, &data);
        if (ok) arity = PyTuple_GET_SIZE(data);
        break;
    default:
        ok = visit_custom(object, registration, &data, &arity);
    }
    --depth_;
    Py_LeaveRecursiveCall();
    size_t num_leaves = buffers_->leaves.size() - first_leaf, num_nodes = buffers_->nodes.size() - first_node + 1;
    if (ok && num_nodes > UINT_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a pytree can have at most 2**32 - 1 nodes");
        ok = false;
    }
    if (!ok) {
        Py_XDECREF(data);
        return false;
    }
    buffers_->nodes.push_back(
        {kind, uint32_t(arity), uint32_t(num_leaves), uint32_t(num_nodes), data, registration});
    return true;
}

bool Flattener::visit_dict(PyObject* dict, PyObject** keys) {
    std::vector<Item>& items = buffers_->items;
    size_t first = items.size();
    if (!sorted_items(dict, items)) return false;
    size_t count = items.size() - first;
    *keys = PyTuple_New(count);
    bool ok = *keys != nullptr;
    if (ok) {
        for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(*keys, i, Py_NewRef(items[first + i].key));
    }
    // `items` may move while a child is visited, but this range of it stays.
    for (size_t i = 0; ok && i < count; ++i) ok = visit(items[first + i].value);
    drop_items(items, first);
    return ok;
}

bool Flattener::visit_custom(PyObject* object, const Registration* registration, PyObject** aux, size_t* arity) {
    PyObject* children_tuple;
    if (!flatten_custom(registration, object, &children_tuple, aux)) return false;
    Ref children = Ref::steal(children_tuple);
    *arity = PyTuple_GET_SIZE(children_tuple);
    for (size_t i = 0; i < *arity; ++i) {
        if (!visit(PyTuple_GET_ITEM(children_tuple, i))) return false;
    }
    return true;
}

void Flattener::close_tuple(size_t count) {
    std::vector<Node>& nodes = buffers_->nodes;
    uint32_t num_leaves = 0, num_nodes = 0;
    for (size_t i = 0; i < count; ++i) {
        const Node& child = nodes[nodes.size() - 1 - num_nodes];
        num_leaves += child.num_leaves;
        num_nodes += child.num_nodes;
    }
    nodes.push_back({Kind::tuple, uint32_t(count), num_leaves, num_nodes + 1, nullptr, nullptr});
}

int Flattener::same_structure(const PyTreeDefObject* treedef) const {
    if (size_t(treedef->size()) != buffers_->nodes.size()) return 0;
    return equal_nodes(buffers_->nodes.data(), treedef->nodes, treedef->size());
}

PyTreeDefObject* Flattener::finish() {
    std::vector<Node>& nodes = buffers_->nodes;
    PyTreeDefObject* treedef = make_treedef(nodes.data(), nodes.size());
    nodes.clear();  // make_treedef took the references over
    return treedef;
}

bool flatten(PyObject* tree, std::vector<PyObject*>& leaves, PyTreeDefObject** treedef) {
    Flattener flattener;
    if (!flattener.flatten(tree)) return false;
    *treedef = flattener.finish();
    if (!*treedef) return false;
    std::vector<PyObject*>& found = flattener.leaf_refs().items;
    leaves.insert(leaves.end(), found.begin(), found.end());
    found.clear();
    return true;
}

// ---- one level

namespace {

// The first eight characters as a number that orders like the string; 0 for characters beyond Latin-1, where
// strings are compared in full.
uint64_t string_prefix(PyObject* string) {
    if (PyUnicode_KIND(string) != PyUnicode_1BYTE_KIND) return 0;
    uint64_t prefix = 0;
    const Py_UCS1* bytes = PyUnicode_1BYTE_DATA(string);
    Py_ssize_t length = std::min<Py_ssize_t>(PyUnicode_GET_LENGTH(string), 8);
    for (Py_ssize_t i = 0; i < length; ++i) prefix |= uint64_t(bytes[i]) << (56 - 8 * i);
    return prefix;
}

// Keys are mostly short strings, and comparing numbers is several times as fast.
void sort_strings(std::vector<Item>::iterator begin, std::vector<Item>::iterator end) {
    struct Entry {
        uint64_t prefix;
        Item item;
    };
    std::vector<Entry> entries;
    entries.reserve(end - begin);
    bool narrow = true;
    for (auto it = begin; it != end; ++it) {
        narrow = narrow && PyUnicode_KIND(it->key) == PyUnicode_1BYTE_KIND;
        entries.push_back({string_prefix(it->key), *it});
    }
    std::sort(entries.begin(), entries.end(), [narrow](const Entry& a, const Entry& b) {
        if (narrow && a.prefix != b.prefix) return a.prefix < b.prefix;
        return PyUnicode_Compare(a.item.key, b.item.key) < 0;
    });
    for (const Entry& entry : entries) *begin++ = entry.item;
}

}  // namespace

bool sorted_items(PyObject* dict, std::vector<Item>& out) {
    size_t first = out.size();
    Py_ssize_t position = 0;
    PyObject *key, *value;
    bool strings = true, integers = true, ascending = true;
    while (PyDict_Next(dict, &position, &key, &value)) {
        strings = strings && PyUnicode_CheckExact(key);
        integers = integers && PyLong_CheckExact(key);
        if (strings && ascending && out.size() > first) ascending = PyUnicode_Compare(out.back().key, key) < 0;
        out.push_back({Py_NewRef(key), Py_NewRef(value)});
    }
    if (out.size() - first <= 1 || (strings && ascending)) return true;
    // Comparing two strings or two integers cannot fail and runs no user code.
    if (strings) {
        sort_strings(out.begin() + first, out.end());
        return true;
    }
    if (integers) {
        std::sort(out.begin() + first, out.end(),
                  [](const Item& a, const Item& b) { return PyObject_RichCompareBool(a.key, b.key, Py_LT) == 1; });
        return true;
    }
    size_t count = out.size() - first;
    Ref keys = Ref::steal(PyList_New(count));
    Ref values = Ref::steal(PyDict_Copy(dict));  // comparisons may change the dict itself
    bool ok = keys && values;
    if (ok) {
        for (size_t i = 0; i < count; ++i) PyList_SET_ITEM(keys.get(), i, Py_NewRef(out[first + i].key));
    }
    drop_items(out, first);
    if (!ok) return false;
    if (PyList_Sort(keys.get()) < 0) {
        if (PyErr_ExceptionMatches(PyExc_Exception)) {
            raise_from(PyExc_ValueError, "Comparator raised exception while sorting pytree dictionary keys.");
        }
        return false;
    }
    for (size_t i = 0; i < count; ++i) {
        key = PyList_GET_ITEM(keys.get(), i);
        value = PyDict_GetItemWithError(values.get(), key);
        if (!value) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_RuntimeError, "dict key %R was not found again while flattening a pytree", key);
            }
            drop_items(out, first);
            return false;
        }
        out.push_back({Py_NewRef(key), Py_NewRef(value)});
    }
    return true;
}

bool flatten_custom(const Registration* registration, PyObject* object, PyObject** children, PyObject** aux) {
    if (registration->native_flatten) return registration->native_flatten(object, children, aux);
    if (registration->kind == Kind::dataclass) {
        Ref values = Ref::steal(PyTuple_New(registration->data_fields.size()));
        Ref meta = Ref::steal(PyTuple_New(registration->meta_fields.size()));
        if (!values || !meta) return false;
        for (size_t i = 0; i < registration->data_fields.size(); ++i) {
            PyObject* value = PyObject_GetAttr(object, registration->data_fields[i]);
            if (!value) return false;
            PyTuple_SET_ITEM(values.get(), i, value);
        }
        for (size_t i = 0; i < registration->meta_fields.size(); ++i) {
            PyObject* value = PyObject_GetAttr(object, registration->meta_fields[i]);
            if (!value) return false;
            PyTuple_SET_ITEM(meta.get(), i, value);
        }
        *children = values.release();
        *aux = meta.release();
        return true;
    }
    Ref pair = Ref::steal(PyObject_CallOneArg(registration->to_iterable, object));
    if (!pair) return false;
    if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
        PyErr_Format(PyExc_ValueError,
                     "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple, got %R "
                     "(node type: %R)", pair.get(), registration->type);
        return false;
    }
    PyObject* iterable = PyTuple_GET_ITEM(pair.get(), 0);
    *children = PySequence_Tuple(iterable);
    if (!*children) {
        // Errors raised by the user's iterator pass through; "not iterable" is explained.
        if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(iterable)->tp_iter && !PySequence_Check(iterable)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError,
                         "The to_iterable function for a custom PyTree node should return a (children, aux_data) tuple "
                         "where 'children' is iterable, got %R (node type: %R)", pair.get(), registration->type);
        }
        return false;
    }
    *aux = Py_NewRef(PyTuple_GET_ITEM(pair.get(), 1));
    return true;
}

namespace {

bool named_tuple_keys(PyObject* object, RefVector& keys) {
    Ref names = Ref::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "_fields"));
    if (!names) return false;
    Ref fields = Ref::steal(PySequence_Tuple(names.get()));
    if (!fields && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    if (!fields || PyTuple_GET_SIZE(fields.get()) != PyTuple_GET_SIZE(object)) {
        PyErr_Format(PyExc_ValueError, "A namedtuple's _fields attribute should have the same size as the tuple; "
                     "the type is %R, its _fields are %R, and the tuple has %zd elements",
                     Py_TYPE(object), names.get(), PyTuple_GET_SIZE(object));
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields.get()); ++i) {
        PyObject* key = make_attr_key(PyTuple_GET_ITEM(fields.get(), i));
        if (!key) return false;
        keys.push_owned(key);
    }
    return true;
}

bool open_with_keys(PyObject* object, const Registration* registration, Level& out) {
    Ref pair = Ref::steal(PyObject_CallOneArg(registration->with_keys, object));
    if (!pair) return false;
    if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
        PyErr_Format(PyExc_ValueError, "The to_iterable_with_keys function for a custom PyTree node should return a "
                     "(key_leaf_pairs, aux_data) tuple, got %R (node type: %R)", pair.get(), registration->type);
        return false;
    }
    Ref entries = Ref::steal(PySequence_Tuple(PyTuple_GET_ITEM(pair.get(), 0)));
    if (!entries) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries.get()); ++i) {
        PyObject* entry = PyTuple_GET_ITEM(entries.get(), i);
        if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 2) {
            PyErr_Format(PyExc_ValueError, "The to_iterable_with_keys function for a custom PyTree node should return a "
                         "(key_leaf_pairs, aux_data) tuple where every pair is a (key, child) tuple; pair %zd is %R "
                         "(node type: %R)", i, entry, registration->type);
            return false;
        }
        out.keys.push(PyTuple_GET_ITEM(entry, 0));
        out.children.push(PyTuple_GET_ITEM(entry, 1));
    }
    out.data = Ref::borrow(PyTuple_GET_ITEM(pair.get(), 1));
    return true;
}

bool push_key(RefVector& keys, PyObject* key) {
    if (!key) return false;
    keys.push_owned(key);
    return true;
}

}  // namespace

bool open_node(PyObject* object, Kind kind, const Registration* registration, bool with_keys, Level& out) {
    switch (kind) {
    case Kind::leaf:
    case Kind::none:
        return true;
    case Kind::tuple:
    case Kind::named_tuple:
    case Kind::list: {
        Ref children = kind == Kind::list ? Ref::steal(PyList_AsTuple(object)) : Ref::borrow(object);
        if (!children) return false;
        Py_ssize_t count = PyTuple_GET_SIZE(children.get());
        for (Py_ssize_t i = 0; i < count; ++i) out.children.push(PyTuple_GET_ITEM(children.get(), i));
        if (kind == Kind::named_tuple) {
            out.data = Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
            return !with_keys || named_tuple_keys(object, out.keys);
        }
        for (Py_ssize_t i = 0; with_keys && i < count; ++i) {
            if (!push_key(out.keys, make_sequence_key(i))) return false;
        }
        return true;
    }
    case Kind::dict: {
        std::vector<Item> items;
        if (!sorted_items(object, items)) return false;
        out.data = Ref::steal(PyTuple_New(items.size()));
        bool ok = bool(out.data);
        for (size_t i = 0; ok && i < items.size(); ++i) {
            PyTuple_SET_ITEM(out.data.get(), i, Py_NewRef(items[i].key));
            out.children.push(items[i].value);
            ok = !with_keys || push_key(out.keys, make_dict_key(items[i].key));
        }
        drop_items(items, 0);
        return ok;
    }
    default:
        break;
    }
    if (with_keys && registration->with_keys) return open_with_keys(object, registration, out);
    PyObject *children_tuple, *aux;
    if (!flatten_custom(registration, object, &children_tuple, &aux)) return false;
    Ref children = Ref::steal(children_tuple);
    out.data = Ref::steal(aux);
    PyObject* names = nullptr;  // borrowed: the tuple of dict keys
    if (registration->dict_keys) names = registration->type == &PyODict_Type ? aux : PyTuple_GET_ITEM(aux, 1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children_tuple); ++i) {
        out.children.push(PyTuple_GET_ITEM(children_tuple, i));
        if (!with_keys) continue;
        PyObject* key = names                                     ? make_dict_key(PyTuple_GET_ITEM(names, i))
                        : registration->kind == Kind::dataclass ? make_attr_key(registration->data_fields[i])
                                                                : make_flat_index_key(i);
        if (!push_key(out.keys, key)) return false;
    }
    return true;
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
