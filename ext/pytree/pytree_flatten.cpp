// Flattening: from trees to leaves and nodes. The contract is in pytree.h.
#include "pytree/pytree.h"

#include <algorithm>
#include <climits>

namespace pb::pytree {

// Working memory of a Flattener. It is recycled: growing fresh vectors costs more than flattening a small tree.
struct Buffers {
    RefVector leaves;
    std::vector<Node> nodes;
    std::vector<Item> items; // a stack of the dict items being visited
};

namespace {

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

}  // namespace

void drop_items(std::vector<Item>& items, size_t from) {
    while (items.size() > from) {
        Item item = items.back();
        items.pop_back();
        Py_DECREF(item.key);
        Py_DECREF(item.value);
    }
}

int stops_at(PyObject* is_leaf, PyObject* path, PyObject* object) {
    PyObject* arguments[2] = {path ? path : object, object};
    Ref answer = Ref::steal(PyObject_Vectorcall(is_leaf, arguments, path ? 2 : 1, nullptr));
    if (!answer) return -1;
    if (answer.get() == Py_True) return 1;
    if (answer.get() == Py_False || answer.get() == Py_None) return 0;
    PyErr_Format(PyExc_ValueError, "is_leaf returned %R, which is neither True nor False", answer.get());
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

// Two keys of different types, or the first two, for a message; the current error stays.
std::string description(PyObject* keys) {
    PyObject* first = PyList_GET_ITEM(keys, 0);
    PyObject* second = PyList_GET_ITEM(keys, 1);
    for (Py_ssize_t i = 1; i < PyList_GET_SIZE(keys); ++i) {
        second = PyList_GET_ITEM(keys, i);
        if (Py_TYPE(second) != Py_TYPE(first)) break;
    }
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    Ref text = Ref::steal(PyUnicode_FromFormat(" The keys of one dictionary must be comparable, but %R is of type %s and "
                                               "%R of type %s.",
                                               first, Py_TYPE(first)->tp_name, second, Py_TYPE(second)->tp_name));
    const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    std::string found = utf8 ? utf8 : "";
    PyErr_Restore(type, error, traceback);
    return found;
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
            raise_from(PyExc_ValueError, ("Comparator raised exception while sorting pytree dictionary keys." +
                                          description(keys.get())).c_str());
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
                     "pytree nodes: the flattening function returned %R for a %R; expected a tuple (children, aux_data)",
                     pair.get(), registration->type);
        return false;
    }
    PyObject* iterable = PyTuple_GET_ITEM(pair.get(), 0);
    *children = PySequence_Tuple(iterable);
    if (!*children) {
        // Errors raised by the user's iterator pass through; "not iterable" is explained.
        if (PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(iterable)->tp_iter && !PySequence_Check(iterable)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError,
                         "pytree nodes: the flattening function returned %R for a %R; its children, which are first, "
                         "cannot be iterated over", pair.get(), registration->type);
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
        PyErr_Format(PyExc_ValueError, "pytree nodes: %R is a named tuple with _fields %R, but one of %zd elements came",
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
        PyErr_Format(PyExc_ValueError, "pytree nodes: the flattening function with keys returned %R for a %R; expected "
                     "a tuple (pairs of keys and children, aux_data)", pair.get(), registration->type);
        return false;
    }
    Ref entries = Ref::steal(PySequence_Tuple(PyTuple_GET_ITEM(pair.get(), 0)));
    if (!entries) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries.get()); ++i) {
        PyObject* entry = PyTuple_GET_ITEM(entries.get(), i);
        if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 2) {
            PyErr_Format(PyExc_ValueError, "pytree nodes: the flattening function with keys gave %R as child %zd of a %R; "
                         "expected a tuple (key, child)", entry, i, registration->type);
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

}  // namespace pb::pytree
