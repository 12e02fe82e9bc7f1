// Pytrees: nested Python containers seen as a structure (a PyTreeDef) and a flat list of leaves.
//
// Contract for other C++ files (all functions need the GIL and may run user code: `to_iterable`, `__eq__`, `__lt__`, ...):
//  * a function returning bool or a pointer reports failure as false / nullptr with the Python error set;
//  * every PyObject* put into a `RefVector` or a `Node` is a strong reference owned by that container;
//  * a PyTreeDefObject never changes once made; two of them are equal by `equal()`, which looks at identity first.
//
// Small structures of plain containers (tuples, lists, None, dicts with string keys) are interned: flattening the same
// structure twice mostly gives the same object, so that a call cache can compare pointers before it calls `equal()`.
#pragma once
#include <Python.h>

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "ref.h"

namespace pb::pytree {

enum class Kind : uint8_t { leaf, none, tuple, named_tuple, list, dict, custom, dataclass };

struct Buffers;

// A node type other than the built-in containers. Made by registration, never freed (structures point to it).
struct Registration {
    PyTypeObject* type;                  // strong
    Kind kind;                           // custom or dataclass
    PyObject* to_iterable = nullptr;     // custom: object -> (children, aux)
    PyObject* from_iterable = nullptr;   // custom: (aux, children) -> object
    PyObject* with_keys = nullptr;       // custom, optional: object -> ((key, child) pairs, aux)
    std::vector<PyObject*> data_fields; // dataclass: interned attribute names of children
    std::vector<PyObject*> meta_fields; // dataclass: interned attribute names of the aux tuple
    PyObject* keyword_names = nullptr;   // dataclass: tuple, data_fields then meta_fields
    // OrderedDict and defaultdict are custom nodes with native code instead of Python callables.
    bool (*native_flatten)(PyObject* object, PyObject** children, PyObject** aux) = nullptr;
    PyObject* (*native_unflatten)(PyObject* aux, PyObject* const* children, Py_ssize_t count) = nullptr;
    bool dict_keys = false;              // children are named by the last element of aux (or aux itself), as DictKey
};

// One node of a structure; a structure is the array of its nodes in post-order (children before their parent).
struct Node {
    Kind kind;
    uint32_t arity;
    uint32_t num_leaves; // in the subtree
    uint32_t num_nodes;  // in the subtree, itself included
    // Owned. dict: tuple of ascending keys; named_tuple: the class; custom: aux; dataclass: tuple of meta values.
    PyObject* data;
    const Registration* registration; // custom, dataclass
};

struct PyTreeDefObject {
    PyObject_VAR_HEAD
    Py_hash_t hash; // -1: not computed yet
    Node nodes[1];  // Py_SIZE(this) of them

    Py_ssize_t size() const { return Py_SIZE(this); }
    const Node& root() const { return nodes[Py_SIZE(this) - 1]; }
    Py_ssize_t num_leaves() const { return root().num_leaves; }
};

extern PyTypeObject* treedef_type;
inline bool is_treedef(PyObject* object) { return Py_TYPE(object) == treedef_type; }

// A vector of strong references.
class RefVector {
  public:
    std::vector<PyObject*> items;

    RefVector() = default;
    RefVector(RefVector&&) = default;
    RefVector(const RefVector&) = delete;
    RefVector& operator=(const RefVector&) = delete;
    ~RefVector() { clear(); }

    void clear() {
        // Emptied before any reference is dropped: a destructor may run Python code that comes back here.
        std::vector<PyObject*> dropped;
        dropped.swap(items);
        for (PyObject* item : dropped) Py_XDECREF(item);
        dropped.clear();
        if (items.empty()) items.swap(dropped); // keep the memory
    }
    void push(PyObject* borrowed) {
        Py_INCREF(borrowed);
        items.push_back(borrowed);
    }
    void push_owned(PyObject* owned) { items.push_back(owned); }
    size_t size() const { return items.size(); }
    PyObject* operator[](size_t i) const { return items[i]; }
};

// Deeper trees are refused even if the user raised the recursion limit: the C stack is finite.
constexpr int max_depth = 5000;

// Flattens trees into reusable memory without making a PyTreeDef. Intended use, e.g. by a call cache:
//     Flattener f;
//     if (!f.flatten(args)) return nullptr;
//     if (f.same_structure(entry->in_tree) == 1) ... f.leaves() ...
// Several `flatten` calls append one tree after the other; `close_tuple(n)` then makes the last n trees one tuple.
class Flattener {
  public:
    Flattener();
    ~Flattener();
    Flattener(const Flattener&) = delete;
    Flattener& operator=(const Flattener&) = delete;

    PyObject* is_leaf = nullptr; // borrowed; called on every node, must return True, False or None
    bool none_is_leaf = false;

    bool flatten(PyObject* tree);
    const std::vector<PyObject*>& leaves() const;
    RefVector& leaf_refs();
    const std::vector<Node>& nodes() const;
    void close_tuple(size_t count);
    // 1 equal, 0 different, -1 error
    int same_structure(const PyTreeDefObject* treedef) const;
    // New reference (possibly to an interned object). Takes the nodes out of this object; leaves stay.
    PyTreeDefObject* finish();

  private:
    Buffers* buffers_;
    int depth_ = 0;
    bool visit(PyObject* object);
    bool visit_node(PyObject* object, Kind kind, const Registration* registration);
    bool visit_dict(PyObject* dict, PyObject** keys);
    bool visit_custom(PyObject* object, const Registration* registration, PyObject** aux, size_t* arity);
    void visit_leaf(PyObject* object);
};

// What the node `object` holds, one level deep.
struct Level {
    RefVector children;
    RefVector keys;     // with_keys only: key path entries
    Ref data;           // as Node::data
};
bool open_node(PyObject* object, Kind kind, const Registration* registration, bool with_keys, Level& out);

// -1 error; otherwise whether `is_leaf` (called with `object`, or with `path` and `object`) stops at this node.
int stops_at(PyObject* is_leaf, PyObject* path, PyObject* object);

// The two calls most users need. `leaves` is appended to, with strong references; `*treedef` is a new reference.
bool flatten(PyObject* tree, std::vector<PyObject*>& leaves, PyTreeDefObject** treedef);
// New reference. `leaves` must not change while this runs; ValueError if `count` is not treedef->num_leaves().
PyObject* unflatten(const PyTreeDefObject* treedef, PyObject* const* leaves, Py_ssize_t count);
PyObject* unflatten_nodes(const Node* nodes, Py_ssize_t num_nodes, PyObject* const* leaves);  // as many as there are
inline PyObject* unflatten(const PyTreeDefObject* treedef, PyObject* const* leaves) {         // leaves in the structure
    return unflatten_nodes(treedef->nodes, treedef->size(), leaves);
}

// Flattens `tree` only as deep as `treedef` goes; appends num_leaves subtrees to `out`. ValueError if it does not match.
bool flatten_up_to(const Node* nodes, Py_ssize_t num_nodes, PyObject* tree, RefVector& out);

int equal(const PyTreeDefObject* a, const PyTreeDefObject* b); // 1, 0 or -1 (a user's __eq__ raised: ValueError)
int equal_nodes(const Node* a, const Node* b, Py_ssize_t count);
int equal_node(const Node& a, const Node& b); // kind, arity and data; not the children
Py_hash_t hash(PyTreeDefObject* treedef);     // -1 on error; cached. Unhashable aux data does not take part.

// Takes over the references in nodes[0..count).
PyTreeDefObject* make_treedef(Node* nodes, Py_ssize_t count);
// A copy with a new reference to its data.
inline Node copy_node(const Node& node) {
    Py_XINCREF(node.data);
    return node;
}
PyObject* treedef_repr(const Node* nodes, Py_ssize_t count);

// Registry.
Kind classify(PyObject* object, const Registration** registration);
const Registration* find_registration(PyTypeObject* type);
bool is_named_tuple_type(PyTypeObject* type);
bool add_registration(Registration* registration); // takes ownership; ValueError if the type is registered already
bool init_registry();

// Custom and dataclass nodes: children as a new tuple, aux as a new reference.
bool flatten_custom(const Registration* registration, PyObject* object, PyObject** children, PyObject** aux);
// One (key, value) of a dict, both strong.
struct Item {
    PyObject* key;
    PyObject* value;
};
// Appends the items of a dict to `out`, keys ascending; ValueError if they cannot be ordered. Appends nothing on failure.
bool sorted_items(PyObject* dict, std::vector<Item>& out);
void drop_items(std::vector<Item>& items, size_t from); // keeps the first `from`

// Sets `type(message)` with the current error as its __cause__.
void raise_from(PyObject* type, const char* message);

// Key path entries: DictKey(key), SequenceKey(idx), GetAttrKey(name), FlattenedIndexKey(key). New references.
PyObject* make_dict_key(PyObject* key);
PyObject* make_sequence_key(Py_ssize_t index);
PyObject* make_attr_key(PyObject* name);
PyObject* make_flat_index_key(Py_ssize_t index);
bool init_keys(PyObject* module);
bool init_treedef_type(PyObject* module);
extern PyMethodDef functions[]; // of the submodule

// Runs a function of the C API kind; memory exhaustion inside becomes a MemoryError.
template <auto function, class... Args>
PyObject* guarded(Args... args) {
    try {
        return function(args...);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

} // namespace pb::pytree

// Adds the submodule `pytree` (types PyTreeDef, DictKey, ..., functions flatten, tree_map, ...) to the extension module.
void bind_pytree(nanobind::module_& module);
