// CacheEntry: what a JitFunction does on a hit. See call_cache.h for its fields.
#pragma once
#include "calls/call_key.h"
#include "pytree/pytree.h"

namespace pb {

struct Entry {
    PyObject_HEAD PyObject *run, *out_tree, *kept_tuple;  // strong
    size_t* kept;                                         // null: all leaves
    size_t kept_count;
    size_t uses;  // how many hits before miss is asked again; 0: never
    // Nanoseconds that compiling takes. When Python functions of a plan have taken as long, which compiled code saves,
    // miss is asked again before: how long they take is not known beforehand.
    static constexpr int64_t kCompilation = 10'000'000;
    // What the result is: the only output, a tuple of all outputs, None, or something to be put together by the
    // treedef.
    enum Shape : uint8_t { single, flat_tuple, none, general } shape;
};

extern PyTypeObject* entry_type;
inline Entry* as_entry(PyObject* object) { return reinterpret_cast<Entry*>(object); }

// Runs the program on the leaves of a call and puts its outputs together. Null with an error set.
PyObject* run_entry(const Entry* entry, const CallKey& key);

// Whether Python functions of the entry's plan have taken as long as compiling does.
bool has_taken_long(const Entry* entry);

// The same for an entry whose program has blocks, on large arrays of the shape of `like`, whatever it was made for.
PyObject* run_sized(const Entry* entry, const CallKey& key, const AvalInfo* like);

// Whether the program's inputs are what the leaves of this key will give it; RuntimeError if not.
bool check_fits(const Entry* entry, const CallKey& key);

bool add_entry_type(PyObject* module);

}  // namespace pb
