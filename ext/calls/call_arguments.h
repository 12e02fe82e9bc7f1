// The leaves of a call as the memory that a program reads.
//
// NumPy's arrays are read where they lie, from any multiple of 16 bytes: what is compiled asks for no more than an
// element's alignment, and NumPy's arrays seldom lie at 64. Measured: a jitted dot of 1e6 elements took 490 us with the
// copies, 150 without.
#pragma once
#include "calls/call_key.h"
#include "small_vector.h"

namespace pb {

// Memory for one scalar.
struct alignas(16) Scratch {
    unsigned char bytes[16];
};

// The hook `asarray` on a leaf: an Array. Null with an error set.
PyObject* call_asarray(PyObject* leaf);

// The argument memory of one run.
struct Arguments {
    size_t count;
    SmallVector<Array*, 48> arrays;  // null for what is not an Array
    SmallVector<void*, 48> data;
    SmallVector<PyObject*, 48> owners;  // where `arrays` has null: what the data belongs to, or null for `scratch`
    SmallVector<Scratch, 48> scratch;
    Growable<PyObject*, 16> made;  // strong

    explicit Arguments(size_t n) : count(n), arrays(n), data(n), owners(n), scratch(n) {}
    // The same arguments, which keep alive what they are by themselves.
    Arguments(const Arguments& other);
    ~Arguments() {
        for (size_t i = 0; i < made.size(); ++i) Py_DECREF(made[i]);
    }

    // Makes argument i of a leaf for an input of `info`. False with an error set.
    bool set(size_t i, const Leaf& leaf, AvalInfo* info) {
        if (leaf.kind == LeafKind::array || leaf.kind == LeafKind::wrapped) {
            arrays[i] = as_array(leaf.object);
            data[i] = arrays[i]->data;
            return true;
        }
        return convert(i, leaf, info);
    }

  private:
    bool convert(size_t i, const Leaf& leaf, AvalInfo* info);
    bool hold(size_t i, PyObject* array);
};

}  // namespace pb
