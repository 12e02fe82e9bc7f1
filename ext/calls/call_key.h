// The key of a call: everything about arguments and context that decides which program runs, and the leaves of the
// arguments.
//
// A key is a list of words compared bit by bit, and a list of Python objects compared by identity or `==`:
//   context   the tokens of trace_state.h (addresses of interned objects), the number of positional arguments
//   argument  static: its number, and the value as an object (static_value.h)
//             else its structure in prefix order, one word per node and leaf
//   node      kind and number of children; the class of a named tuple, the keys of a dict, the aux data of a registered
//   class leaf      Array: its aval (and the device it is committed to); NumPy array or scalar: dtype and shape;
//             bool, int, float, complex: its type; else what the hook `leaf` says
// Keyword arguments come after the positional ones, sorted by name, with their names. Leaves are numbered in that
// order.
//
// Everything here needs the GIL.
#pragma once
#include <cstdint>
#include <vector>

#include "arrays/array.h"

namespace pb {

// A growable list of plain values that starts on the stack.
template <typename T, size_t N>
class Growable {
  public:
    Growable() : data_(stack_) {}
    ~Growable() {
        if (data_ != stack_) delete[] data_;
    }
    Growable(const Growable&) = delete;
    void push(T value) {
        if (size_ == capacity_) grow();
        data_[size_++] = value;
    }
    size_t size() const { return size_; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }
    void pop() { --size_; }

  private:
    void grow() {
        T* bigger = new T[2 * capacity_];
        for (size_t i = 0; i < size_; ++i) bigger[i] = data_[i];
        if (data_ != stack_) delete[] data_;
        data_ = bigger;
        capacity_ *= 2;
    }
    T stack_[N];
    T* data_;
    size_t size_ = 0, capacity_ = N;
};

enum class LeafKind : uint8_t { array, boolean, integer, real, complex, ndarray, numpy_scalar, wrapped };

struct Leaf {
    PyObject* object;  // strong; for `wrapped` the Array that the hook gave
    LeafKind kind;
};

enum class Match : uint8_t {
    identity,  // the same object (classes, devices)
    equal,     // ==
    typed      // as static_value.h says
};

struct KeyObject {
    PyObject* object;  // strong
    Match match;
};

enum class Build { ok, unknown, error };

// Which arguments belong to the key by their value.
struct StaticArguments {
    uint64_t early = 0;               // bit i: the positional argument i
    uint64_t literal = 0;             // bit i: that, if it is an int or bool
    std::vector<int64_t> others;      // positions beyond 63; negative: counted from the last positional argument
    std::vector<PyObject*> names;     // strong, str
    std::vector<PyObject*> literal_names;  // strong, str: those that are static if they are ints or bools
    bool all_names = false;           // every keyword argument

    bool has_position(size_t i, size_t count, PyObject* value) const {
        if (i < 64 && (early >> i & 1)) return true;
        if (i < 64 && (literal >> i & 1) && is_literal(value)) return true;
        for (int64_t n : others)
            if (n == int64_t(i) || n == int64_t(i) - int64_t(count)) return true;
        return false;
    }
    bool has_name(PyObject* name, PyObject* value) const {
        return all_names || contains(names, name) || (is_literal(value) && contains(literal_names, name));
    }
    void add_position(int64_t n) {
        if (n >= 0 && n < 64) early |= uint64_t(1) << n;
        else others.push_back(n);
    }

  private:
    static bool is_literal(PyObject* value) { return PyLong_CheckExact(value) || PyBool_Check(value); }
    static bool contains(const std::vector<PyObject*>& names, PyObject* name) {
        for (PyObject* s : names)
            if (s == name || PyUnicode_Compare(s, name) == 0) return true;
        return false;
    }
};

// The key of one call, while it is being made.
class CallKey {
  public:
    CallKey() = default;
    ~CallKey();

    // Reads the arguments of a vectorcall.
    // `unknown`: some argument is a tracer, of a type that has no key, or cannot be flattened or hashed, so that Python
    // must see to it. `error`: an error is set.
    Build build(PyObject* const* args, size_t count, PyObject* keyword_names, const StaticArguments& statics);

    Growable<uint64_t, 96> words;
    Growable<KeyObject, 24> objects;
    Growable<Leaf, 48> leaves;

  private:
    Build add_static(PyObject* value, uint64_t word);
    Build add_tree(PyObject* tree, int depth);
    Build add_dict(PyObject* dict, int depth);
    Build add_leaf(PyObject* object);
    Build add_numpy(PyObject* object, int type_num, int ndim, const npy_intp* dims, LeafKind kind);
    Build add_wrapped(PyObject* object);
    void add_object(PyObject* object, Match match) { objects.push({Py_NewRef(object), match}); }
};

// A key that is kept. Holds its objects and the avals whose addresses are among its words.
struct StoredKey {
    std::vector<uint64_t> words;
    std::vector<KeyObject> objects;
    std::vector<AvalInfo*> infos;

    explicit StoredKey(const CallKey& key);
    ~StoredKey();
    StoredKey(const StoredKey&) = delete;

    bool same_words(const CallKey& key) const;
    bool same_identities(const CallKey& key) const;  // implies equal keys if the words are the same
    int equal_objects(const CallKey& key) const;     // 1, 0, or -1 if an __eq__ raised; runs Python code
    // 1 if what matches by == is equal and all else the same; 0 also if an __eq__ raised an Exception. Runs Python code.
    int equal_metadata(const CallKey& key) const;
};

// False with an error set if an object's __hash__ fails.
bool hash_key(const CallKey& key, uint64_t* hash);

}  // namespace pb
