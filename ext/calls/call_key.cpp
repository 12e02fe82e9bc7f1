#include "calls/call_key.h"

#include <algorithm>
#include <cstring>

#include "hooks.h"
#include "pytree/pytree.h"
#include "ref.h"
#include "calls/static_value.h"
#include "calls/trace_state.h"

namespace pb {
namespace {

constexpr int kMaxDepth = 200;  // deeper trees go through Python, which reports recursion properly

// The lowest byte of a word says what it is, except for words that follow one which announces them (addresses,
// dimensions) and those of arrays: the address of an AvalInfo, whose lowest bits are 0.
enum Tag : uint64_t {
    kTuple = 1,
    kList,
    kDict,
    kNone,
    kNamedTuple,
    kCustom,
    kBool,
    kInt,
    kFloat,
    kComplex,
    kNumpy,
    kWrapped,
    kDevice,
    kStatic,
    kName
};
static_assert(alignof(AvalInfo) >= 8);

inline uint64_t word(Tag tag, uint64_t value) { return value << 8 | (tag << 1 | 1); }
inline uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// After a failure in user code: Python's own path will meet it again and tell it better. Only Ctrl-C and the like pass.
Build give_up() {
    if (!PyErr_Occurred()) return Build::unknown;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return Build::error;
    PyErr_Clear();
    return Build::unknown;
}

// Whether arrays of this dtype are told apart by its number alone, and C can read them.
bool is_plain(const PyArray_Descr* descr) {
    int n = descr->type_num;
    return (PyTypeNum_ISBOOL(n) || PyTypeNum_ISNUMBER(n) || PyTypeNum_ISUSERDEF(n)) &&
           PyArray_ISNBO(descr->byteorder) && !PyDataType_REFCHK(descr);
}

}  // namespace

CallKey::~CallKey() {
    for (size_t i = 0; i < objects.size(); ++i) Py_DECREF(objects[i].object);
    for (size_t i = 0; i < leaves.size(); ++i) Py_DECREF(leaves[i].object);
}

Build CallKey::add_static(PyObject* value, uint64_t number) {
    words.push(word(kStatic, number));
    add_object(value, Match::typed);
    return Build::ok;
}

Build CallKey::add_wrapped(PyObject* object) {
    if (is_tracer(object) || !hooks.leaf) return Build::unknown;
    Ref hook = Ref::borrow(hooks.leaf);
    Ref pair = Ref::steal(PyObject_CallOneArg(hook.get(), object));
    if (!pair || pair.get() == Py_None) return give_up();
    if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2 ||
        !is_array(PyTuple_GET_ITEM(pair.get(), 1))) {
        PyErr_Format(PyExc_TypeError, "hook 'leaf' returned %R; expected (key, Array) or None", pair.get());
        return Build::error;
    }
    PyObject* array = PyTuple_GET_ITEM(pair.get(), 1);
    words.push(word(kWrapped, 0));
    words.push(address(as_array(array)->info));
    if (as_array(array)->device) {
        words.push(word(kDevice, 0));
        add_object(as_array(array)->device, Match::identity);
    }
    add_object(PyTuple_GET_ITEM(pair.get(), 0), Match::equal);
    leaves.push({Py_NewRef(array), LeafKind::wrapped});
    return Build::ok;
}

Build CallKey::add_numpy(PyObject* object, int type_num, int ndim, const npy_intp* dims, LeafKind kind) {
    words.push(word(kNumpy, uint64_t(type_num) << 8 | uint64_t(ndim)));
    for (int i = 0; i < ndim; ++i) words.push(uint64_t(dims[i]));
    leaves.push({Py_NewRef(object), kind});
    return Build::ok;
}

Build CallKey::add_leaf(PyObject* object) {
    auto python = [&](Tag tag, LeafKind kind) {
        words.push(word(tag, 0));
        leaves.push({Py_NewRef(object), kind});
        return Build::ok;
    };
    if (PyFloat_CheckExact(object)) return python(kFloat, LeafKind::real);
    if (PyLong_CheckExact(object)) return python(kInt, LeafKind::integer);
    if (PyBool_Check(object)) return python(kBool, LeafKind::boolean);
    if (PyComplex_CheckExact(object)) return python(kComplex, LeafKind::complex);
    if (PyArray_CheckExact(object)) {
        auto* array = reinterpret_cast<PyArrayObject*>(object);
        if (is_plain(PyArray_DESCR(array)))
            return add_numpy(object, PyArray_TYPE(array), PyArray_NDIM(array), PyArray_DIMS(array), LeafKind::ndarray);
    } else if (PyArray_IsScalar(object, Generic)) {
        Ref descr = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromScalar(object)));
        if (!descr) return give_up();
        auto* d = reinterpret_cast<PyArray_Descr*>(descr.get());
        if (is_plain(d)) return add_numpy(object, d->type_num, 0, nullptr, LeafKind::numpy_scalar);
    }
    return add_wrapped(object);
}

Build CallKey::add_dict(PyObject* dict, int depth) {
    // The items are held while they are visited, as a registered class may run code that changes the dict.
    Growable<pytree::Item, 16> few;
    std::vector<pytree::Item> many;
    bool strings = true, ascending = true;
    PyObject *key, *value;
    for (Py_ssize_t position = 0; strings && PyDict_Next(dict, &position, &key, &value);) {
        strings = PyUnicode_CheckExact(key);
        if (strings && few.size()) ascending = ascending && PyUnicode_Compare(few[few.size() - 1].key, key) < 0;
        few.push({Py_NewRef(key), Py_NewRef(value)});
    }
    pytree::Item* items = few.data();
    size_t count = few.size();
    Build result = Build::ok;
    if (!strings) {
        if (!pytree::sorted_items(dict, many)) result = give_up();
        items = many.data();
        count = many.size();
    } else if (!ascending) {
        std::sort(items, items + count,
                  [](const pytree::Item& a, const pytree::Item& b) { return PyUnicode_Compare(a.key, b.key) < 0; });
    }
    words.push(word(kDict, count));
    for (size_t i = 0; i < count && result == Build::ok; ++i) {
        add_object(items[i].key, Match::equal);
        result = add_tree(items[i].value, depth + 1);
    }
    auto release = [](pytree::Item* released, size_t n) {
        for (size_t i = 0; i < n; ++i) {
            Py_DECREF(released[i].key);
            Py_DECREF(released[i].value);
        }
    };
    release(few.data(), few.size());
    release(many.data(), many.size());
    return result;
}

Build CallKey::add_tree(PyObject* tree, int depth) {
    using pytree::Kind;
    if (is_array(tree)) {
        Array* a = as_array(tree);
        words.push(address(a->info));
        if (a->device) {
            words.push(word(kDevice, 0));
            add_object(a->device, Match::identity);
        }
        leaves.push({Py_NewRef(tree), LeafKind::array});
        return Build::ok;
    }
    const pytree::Registration* registration = nullptr;
    Kind kind = pytree::classify(tree, &registration);
    if (kind == Kind::leaf) return add_leaf(tree);
    if (depth > kMaxDepth) return Build::unknown;
    switch (kind) {
        case Kind::none:
            words.push(word(kNone, 0));
            return Build::ok;
        case Kind::tuple:
        case Kind::named_tuple: {
            Py_ssize_t n = PyTuple_GET_SIZE(tree);
            words.push(word(kind == Kind::tuple ? kTuple : kNamedTuple, uint64_t(n)));
            if (kind == Kind::named_tuple) add_object(reinterpret_cast<PyObject*>(Py_TYPE(tree)), Match::identity);
            for (Py_ssize_t i = 0; i < n; ++i)
                if (Build b = add_tree(PyTuple_GET_ITEM(tree, i), depth + 1); b != Build::ok) return b;
            return Build::ok;
        }
        case Kind::list: {
            // A registered class may run code that changes the list: its length is looked at again each time.
            Py_ssize_t n = PyList_GET_SIZE(tree);
            words.push(word(kList, uint64_t(n)));
            for (Py_ssize_t i = 0; i < n; ++i) {
                if (i >= PyList_GET_SIZE(tree)) return Build::unknown;
                Ref child = Ref::borrow(PyList_GET_ITEM(tree, i));
                if (Build b = add_tree(child.get(), depth + 1); b != Build::ok) return b;
            }
            return Build::ok;
        }
        case Kind::dict:
            return add_dict(tree, depth);
        default: {
            PyObject *children = nullptr, *aux = nullptr;
            if (!pytree::flatten_custom(registration, tree, &children, &aux)) return give_up();
            Ref keep_children = Ref::steal(children), keep_aux = Ref::steal(aux);
            Py_ssize_t n = PyTuple_GET_SIZE(children);
            words.push(word(kCustom, uint64_t(n)));
            words.push(address(registration));
            add_object(aux ? aux : Py_None, Match::equal);
            for (Py_ssize_t i = 0; i < n; ++i)
                if (Build b = add_tree(PyTuple_GET_ITEM(children, i), depth + 1); b != Build::ok) return b;
            return Build::ok;
        }
    }
}

Build CallKey::build(PyObject* const* args, size_t count, PyObject* keyword_names, const StaticArguments& statics) {
    words.push(address(process_token));
    words.push(address(trace_state.thread_token));
    words.push(count);
    for (size_t i = 0; i < count; ++i) {
        if (statics.has_position(i, count, args[i])) {
            add_static(args[i], i);
        } else if (Build b = add_tree(args[i], 0); b != Build::ok) {
            return b;
        }
    }
    size_t keywords = keyword_names ? size_t(PyTuple_GET_SIZE(keyword_names)) : 0;
    if (!keywords) return Build::ok;
    Growable<size_t, 16> order;
    for (size_t k = 0; k < keywords; ++k) order.push(k);
    auto name = [&](size_t k) { return PyTuple_GET_ITEM(keyword_names, Py_ssize_t(k)); };
    std::sort(order.data(), order.data() + keywords,
              [&](size_t a, size_t b) { return PyUnicode_Compare(name(a), name(b)) < 0; });
    for (size_t j = 0; j < keywords; ++j) {
        size_t k = order[j];
        words.push(word(kName, 0));
        add_object(name(k), Match::equal);
        if (statics.has_name(name(k), args[count + k])) {
            add_static(args[count + k], ~uint64_t(0) >> 8);
        } else if (Build b = add_tree(args[count + k], 0); b != Build::ok) {
            return b;
        }
    }
    return Build::ok;
}

// ---- kept keys ------------------------------------------------------------------------------------------------------

StoredKey::StoredKey(const CallKey& key) : words(key.words.data(), key.words.data() + key.words.size()) {
    for (size_t i = 0; i < key.objects.size(); ++i) {
        Py_INCREF(key.objects[i].object);
        objects.push_back(key.objects[i]);
    }
    for (size_t i = 0; i < key.leaves.size(); ++i) {
        LeafKind kind = key.leaves[i].kind;
        if (kind == LeafKind::array || kind == LeafKind::wrapped)
            infos.push_back(retain_info(as_array(key.leaves[i].object)->info));
    }
}

StoredKey::~StoredKey() {
    for (AvalInfo* info : infos) release_info(info);
    for (const KeyObject& o : objects) Py_DECREF(o.object);
}

bool StoredKey::same_words(const CallKey& key) const {
    return words.size() == key.words.size() && objects.size() == key.objects.size() &&
           !memcmp(words.data(), key.words.data(), words.size() * sizeof(uint64_t));
}

bool StoredKey::same_identities(const CallKey& key) const {
    for (size_t i = 0; i < objects.size(); ++i)
        if (objects[i].object != key.objects[i].object) return false;
    return true;
}

int StoredKey::equal_objects(const CallKey& key) const {
    for (size_t i = 0; i < objects.size(); ++i) {
        PyObject *a = objects[i].object, *b = key.objects[i].object;
        if (a == b) continue;
        Match match = objects[i].match;
        if (match == Match::identity) return 0;
        int same = match == Match::typed ? same_static(a, b) : PyObject_RichCompareBool(a, b, Py_EQ);
        if (same != 1) return same;
    }
    return 1;
}

int StoredKey::equal_metadata(const CallKey& key) const {
    for (size_t i = 0; i < objects.size(); ++i)
        if (objects[i].match != Match::equal && objects[i].object != key.objects[i].object) return 0;
    const int same = equal_objects(key);
    if (same >= 0 || !PyErr_ExceptionMatches(PyExc_Exception)) return same;
    PyErr_Clear();  // asked again where hashes are equal, and reported there
    return 0;
}

bool hash_key(const CallKey& key, uint64_t* result) {
    uint64_t h = 0x9e3779b97f4a7c15;
    auto mix = [&](uint64_t value) {
        h = (h ^ value) * 0xff51afd7ed558ccd;
        h ^= h >> 32;
    };
    for (size_t i = 0; i < key.words.size(); ++i) mix(key.words[i]);
    for (size_t i = 0; i < key.objects.size(); ++i) {
        const KeyObject& o = key.objects[i];
        if (o.match == Match::identity) {
            mix(address(o.object));
            continue;
        }
        Py_hash_t value = PyObject_Hash(o.object);
        if (value == -1) {
            if (o.match == Match::typed) return false;
            // aux data of a registered class that is not hashable still has ==
            if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
            PyErr_Clear();
            value = 0;
        }
        mix(uint64_t(value));
    }
    *result = h;
    return true;
}

}  // namespace pb
