#include "call_cache.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "allocator.h"
#include "call_key.h"
#include "executable.h"
#include "gil.h"
#include "hooks.h"
#include "pytree.h"
#include "ref.h"
#include "small_vector.h"
#include "trace_state.h"

namespace pb {
namespace {

PyTypeObject* entry_type = nullptr;
PyTypeObject* jit_type = nullptr;

// ---- CacheEntry -----------------------------------------------------------------------------------------------------

struct Entry {
    PyObject_HEAD PyObject *run, *out_tree, *kept_tuple;  // strong
    size_t* kept;                                         // null: all leaves
    size_t kept_count;
    size_t uses;  // how many hits before miss is asked again; 0: never
    // What the result is: the only output, a tuple of all outputs, None, or something to be put together by the
    // treedef.
    enum Shape : uint8_t { single, flat_tuple, none, general } shape;
};

Entry* as_entry(PyObject* object) { return reinterpret_cast<Entry*>(object); }
const pytree::PyTreeDefObject* treedef_of(const Entry* e) {
    return reinterpret_cast<const pytree::PyTreeDefObject*>(e->out_tree);
}

Entry::Shape shape_of(const pytree::PyTreeDefObject* treedef) {
    const pytree::Node& root = treedef->root();
    if (root.kind == pytree::Kind::leaf) return Entry::single;
    if (root.kind == pytree::Kind::none) return Entry::none;
    bool flat = root.kind == pytree::Kind::tuple && root.num_leaves == root.arity && root.num_nodes == root.arity + 1;
    return flat ? Entry::flat_tuple : Entry::general;
}

PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"run", "out_tree", "kept", "uses", nullptr};
    PyObject *run, *out_tree, *kept = Py_None;
    Py_ssize_t uses = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|On:CacheEntry", const_cast<char**>(names), &run, &out_tree,
                                     &kept, &uses))
        return nullptr;
    if (uses < 0) return PyErr_Format(PyExc_ValueError, "CacheEntry: uses is %zd; expected at least 0", uses);
    if (!PyCallable_Check(run))
        return PyErr_Format(PyExc_TypeError, "CacheEntry: run is %R; expected an Executable or a callable", run);
    if (!pytree::is_treedef(out_tree))
        return PyErr_Format(PyExc_TypeError, "CacheEntry: out_tree is %R; expected a PyTreeDef", out_tree);
    Ref self = Ref::steal(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    Entry* e = as_entry(self.get());
    e->run = Py_NewRef(run);
    e->out_tree = Py_NewRef(out_tree);
    e->uses = size_t(uses);
    e->shape = shape_of(treedef_of(e));
    if (kept == Py_None) {
        e->kept_tuple = Py_NewRef(Py_None);
    } else {
        e->kept_tuple = PySequence_Tuple(kept);
        if (!e->kept_tuple) return nullptr;
        size_t n = e->kept_count = size_t(PyTuple_GET_SIZE(e->kept_tuple));
        e->kept = new size_t[n + 1];
        for (size_t i = 0; i < n; ++i) {
            e->kept[i] = PyLong_AsSize_t(PyTuple_GET_ITEM(e->kept_tuple, Py_ssize_t(i)));
            if (e->kept[i] == size_t(-1) && PyErr_Occurred()) return nullptr;
        }
    }
    if (is_executable(run)) {
        size_t outputs = reinterpret_cast<Executable*>(run)->program->out.size();
        if (outputs != size_t(treedef_of(e)->num_leaves())) {
            return PyErr_Format(PyExc_ValueError,
                                "CacheEntry: the program has %zu outputs, but out_tree has %zd leaves", outputs,
                                treedef_of(e)->num_leaves());
        }
    }
    return self.release();
}

int entry_traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_entry(self)->run);
    Py_VISIT(as_entry(self)->out_tree);
    return 0;
}

void entry_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    Entry* e = as_entry(self);
    Py_XDECREF(e->run);
    Py_XDECREF(e->out_tree);
    Py_XDECREF(e->kept_tuple);
    delete[] e->kept;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef entry_members[] = {
    {"run", T_OBJECT_EX, offsetof(Entry, run), READONLY, "The program."},
    {"out_tree", T_OBJECT_EX, offsetof(Entry, out_tree), READONLY, "The structure of the result."},
    {"kept", T_OBJECT_EX, offsetof(Entry, kept_tuple), READONLY,
     "The numbers of the leaves that are passed on; None: all."},
    {nullptr},
};
PyType_Slot entry_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(entry_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(entry_traverse)},
    {Py_tp_members, entry_members},
    {Py_tp_doc,
     const_cast<char*>("What a JitFunction does on a hit: run a program on some leaves, put its outputs together.")},
    {0, nullptr},
};
PyType_Spec entry_spec = {"pullback._ext._core.CacheEntry", sizeof(Entry), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                          entry_slots};

// ---- leaves to memory -----------------------------------------------------------------------------------------------

// Memory for one scalar.
struct alignas(16) Scratch {
    unsigned char bytes[16];
};

PyObject* call_asarray(PyObject* leaf) {
    if (!hooks.asarray) return hook_missing("asarray");
    Ref hook = Ref::borrow(hooks.asarray);
    Ref array = Ref::steal(PyObject_CallOneArg(hook.get(), leaf));
    if (array && !is_array(array.get())) {
        PyErr_Format(PyExc_TypeError, "hook 'asarray' returned a %s; expected an Array", Py_TYPE(array.get())->tp_name);
        return nullptr;
    }
    return array.release();
}

template <typename T>
bool put(Scratch* scratch, T value) {
    memcpy(scratch->bytes, &value, sizeof value);
    return true;
}

// Writes a Python or NumPy scalar as the program's dtype. False without an error if it is not one of the cases known
// here.
bool write_scalar(const Leaf& leaf, const PyArray_Descr* descr, Scratch* scratch) {
    PyObject* x = leaf.object;
    switch (leaf.kind) {
        case LeafKind::boolean:
            return descr->type_num == NPY_BOOL && put(scratch, npy_bool(x == Py_True));
        case LeafKind::integer: {
            int overflow;
            long long value = PyLong_AsLongLongAndOverflow(x, &overflow);
            if (overflow) return false;
            if (descr->type_num == NPY_INT) return value == int(value) && put(scratch, int(value));
            return (descr->type_num == NPY_LONG || descr->type_num == NPY_LONGLONG) && PyDataType_ELSIZE(descr) == 8 &&
                   put(scratch, value);
        }
        case LeafKind::real:
            if (descr->type_num == NPY_FLOAT) return put(scratch, float(PyFloat_AS_DOUBLE(x)));
            return descr->type_num == NPY_DOUBLE && put(scratch, PyFloat_AS_DOUBLE(x));
        case LeafKind::complex: {
            Py_complex z = PyComplex_AsCComplex(x);
            if (descr->type_num == NPY_CFLOAT) {
                const float parts[2] = {float(z.real), float(z.imag)};
                memcpy(scratch->bytes, parts, sizeof parts);
                return true;
            }
            if (descr->type_num != NPY_CDOUBLE) return false;
            memcpy(scratch->bytes, &z, sizeof z);
            return true;
        }
        case LeafKind::numpy_scalar:
            if (descr->type_num == NPY_FLOAT && PyArray_IsScalar(x, Float))
                return put(scratch, PyArrayScalar_VAL(x, Float));
            if (descr->type_num == NPY_FLOAT && PyArray_IsScalar(x, Double))
                return put(scratch, float(PyArrayScalar_VAL(x, Double)));
            if (descr->type_num == NPY_DOUBLE && PyArray_IsScalar(x, Double))
                return put(scratch, PyArrayScalar_VAL(x, Double));
            if (descr->type_num == NPY_INT && PyArray_IsScalar(x, Int)) return put(scratch, PyArrayScalar_VAL(x, Int));
            return false;
        default:
            return false;
    }
}

// The argument memory of one run.
struct Arguments {
    size_t count;
    SmallVector<Array*, 48> arrays;
    SmallVector<void*, 48> data;
    SmallVector<Scratch, 48> scratch;
    Growable<PyObject*, 16> made;  // strong

    explicit Arguments(size_t n) : count(n), arrays(n), data(n), scratch(n) {}
    ~Arguments() {
        for (size_t i = 0; i < made.size(); ++i) Py_DECREF(made[i]);
    }

    // Makes argument i of a leaf for an input of `info`. False with an error set.
    bool set(size_t i, const Leaf& leaf, AvalInfo* info, size_t alignment) {
        if (leaf.kind == LeafKind::array || leaf.kind == LeafKind::wrapped) {
            arrays[i] = as_array(leaf.object);
            data[i] = arrays[i]->data;
            return true;
        }
        arrays[i] = nullptr;
        if (leaf.kind == LeafKind::ndarray) {
            auto* x = reinterpret_cast<PyArrayObject*>(leaf.object);
            if (PyArray_TYPE(x) == info->descr->type_num && PyArray_IS_C_CONTIGUOUS(x) &&
                is_aligned(PyArray_DATA(x), alignment)) {
                data[i] = PyArray_DATA(x);
                return true;
            }
            return hold(i, reinterpret_cast<PyObject*>(new_array_from_numpy(retain_info(info), x, false)));
        }
        if (write_scalar(leaf, info->descr, &scratch[i])) {
            data[i] = &scratch[i];
            return true;
        }
        if (leaf.kind == LeafKind::numpy_scalar) {
            Ref x = Ref::steal(PyArray_FromScalar(leaf.object, nullptr));
            return x && hold(i, reinterpret_cast<PyObject*>(new_array_from_numpy(
                                    retain_info(info), reinterpret_cast<PyArrayObject*>(x.get()), false)));
        }
        Ref x = Ref::steal(call_asarray(leaf.object));
        if (!x) return false;
        if (as_array(x.get())->info->nbytes != info->nbytes) {
            PyErr_Format(PyExc_TypeError, "hook 'asarray' returned %S where the program takes %S",
                         as_array(x.get())->info->aval, info->aval);
            return false;
        }
        return hold(i, x.release());
    }

  private:
    bool hold(size_t i, PyObject* array) {
        if (!array) return false;
        made.push(array);
        data[i] = as_array(array)->data;
        return true;
    }
};

// ---- running an entry -----------------------------------------------------------------------------------------------

PyObject* assemble(const Entry* e, PyObject** outputs, size_t count) {
    // Takes over the references in `outputs`.
    PyObject* result = nullptr;
    switch (e->shape) {
        case Entry::single:
            return outputs[0];
        case Entry::flat_tuple:
            result = PyTuple_New(Py_ssize_t(count));
            if (!result) break;
            for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(result, Py_ssize_t(i), outputs[i]);
            return result;
        case Entry::none:
            result = Py_NewRef(Py_None);
            break;
        case Entry::general:
            result = pytree::unflatten(treedef_of(e), outputs, Py_ssize_t(count));
            break;
    }
    for (size_t i = 0; i < count; ++i) Py_DECREF(outputs[i]);
    return result;
}

PyObject* run_program(const Entry* e, const CallKey& key) {
    auto* executable = reinterpret_cast<Executable*>(e->run);
    const Program& p = *executable->program;
    Arguments arguments(p.in.size());
    for (size_t i = 0; i < p.in.size(); ++i)
        if (!arguments.set(i, key.leaves[e->kept ? e->kept[i] : i], p.in[i], p.input_alignment)) return nullptr;
    size_t count = p.out.size();
    SmallVector<PyObject*, 48> outputs(count);
    if (!execute(executable, arguments.arrays.data(), arguments.data.data(), outputs.data())) return nullptr;
    return assemble(e, outputs.data(), count);
}

PyObject* run_callable(const Entry* e, const CallKey& key) {
    size_t n = e->kept ? e->kept_count : key.leaves.size();
    Ref list = Ref::steal(PyList_New(Py_ssize_t(n)));
    if (!list) return nullptr;
    for (size_t i = 0; i < n; ++i) {
        const Leaf& leaf = key.leaves[e->kept ? e->kept[i] : i];
        bool ready = leaf.kind == LeafKind::array || leaf.kind == LeafKind::wrapped;
        PyObject* array = ready ? Py_NewRef(leaf.object) : call_asarray(leaf.object);
        if (!array) return nullptr;
        PyList_SET_ITEM(list.get(), Py_ssize_t(i), array);
    }
    Ref outputs = Ref::steal(in_python([&] { return PyObject_CallOneArg(e->run, list.get()); }));
    if (!outputs) return nullptr;
    Ref sequence = Ref::steal(PySequence_Tuple(outputs.get()));
    if (!sequence) return nullptr;
    size_t count = size_t(PyTuple_GET_SIZE(sequence.get()));
    if (count != size_t(treedef_of(e)->num_leaves()))
        return PyErr_Format(PyExc_RuntimeError, "the program returned %zu outputs, but its out_tree has %zd leaves",
                            count, treedef_of(e)->num_leaves());
    SmallVector<PyObject*, 48> items(count);
    for (size_t i = 0; i < count; ++i) items[i] = Py_NewRef(PyTuple_GET_ITEM(sequence.get(), Py_ssize_t(i)));
    return assemble(e, items.data(), count);
}

// Whether the program's inputs are what the leaves of this key will give it; RuntimeError if not.
bool check_fits(const Entry* e, const CallKey& key) {
    size_t n = e->kept ? e->kept_count : key.leaves.size();
    for (size_t i = 0; i < n && e->kept; ++i)
        if (e->kept[i] >= key.leaves.size()) {
            PyErr_Format(PyExc_RuntimeError, "CacheEntry: kept[%zu] is %zu, but the call has %zu leaves", i, e->kept[i],
                         key.leaves.size());
            return false;
        }
    if (!is_executable(e->run)) return true;
    const Program& p = *reinterpret_cast<Executable*>(e->run)->program;
    if (n != p.in.size()) {
        PyErr_Format(PyExc_RuntimeError, "CacheEntry: the program takes %zu inputs, but is given %zu leaves",
                     p.in.size(), n);
        return false;
    }
    for (size_t i = 0; i < n; ++i) {
        const Leaf& leaf = key.leaves[e->kept ? e->kept[i] : i];
        const AvalInfo* info = p.in[i];
        bool fits;
        if (leaf.kind == LeafKind::array || leaf.kind == LeafKind::wrapped) {
            const AvalInfo* given = as_array(leaf.object)->info;
            fits = leaf.kind == LeafKind::wrapped
                       ? given->nbytes == info->nbytes
                       : given->ndim == info->ndim && PyArray_CompareLists(given->dims, info->dims, info->ndim) &&
                             (given->descr == info->descr || PyArray_EquivTypes(given->descr, info->descr));
        } else if (leaf.kind == LeafKind::ndarray) {
            auto* x = reinterpret_cast<PyArrayObject*>(leaf.object);
            fits = PyArray_NDIM(x) == info->ndim && PyArray_CompareLists(PyArray_DIMS(x), info->dims, info->ndim);
        } else {
            fits = info->ndim == 0;
        }
        if (!fits) {
            PyErr_Format(PyExc_RuntimeError,
                         "CacheEntry: input %zu of the program is %S, which leaf %zu of the call does not fit", i,
                         info->aval, e->kept ? e->kept[i] : i);
            return false;
        }
    }
    return true;
}

// ---- the table ------------------------------------------------------------------------------------------------------

// One remembered call. Counted by hand (the GIL is held), as comparing keys can run Python code that drops it from the
// table.
struct Slot {
    StoredKey key;
    Entry* entry;  // strong; null while the key has only been seen
    uint64_t used = 0;
    uint64_t hash;
    size_t calls = 0;  // since the entry was set or refused, or since the key was first seen
    size_t wait = 0;   // eager: how many calls go to the function before miss is asked
    int references = 1;

    Slot(const CallKey& k, uint64_t h) : key(k), entry(nullptr), hash(h) {}
    ~Slot() { Py_XDECREF(entry); }
    void set(Entry* e) {
        Entry* old = entry;
        Py_INCREF(e);
        entry = e;
        calls = 0;
        Py_XDECREF(old);
    }
};

void drop(Slot* slot) {
    if (slot && --slot->references == 0) delete slot;
}

struct SlotRef {
    Slot* slot;
    explicit SlotRef(Slot* s) : slot(s) {
        if (slot) ++slot->references;
    }
    SlotRef(SlotRef&& other) noexcept : slot(std::exchange(other.slot, nullptr)) {}
    SlotRef(const SlotRef&) = delete;
    ~SlotRef() { drop(slot); }
};

struct Table {
    std::unordered_multimap<uint64_t, Slot*> slots;  // each counted once
    Slot* last = nullptr;                            // the one that was used last; borrowed from `slots`
    uint64_t clock = 0;
    size_t maxsize = 0;

    // The slot of a key; null if there is none, or with an error set. `hash` is set if there is none. `hashable` says
    // whether one can be made.
    SlotRef find(const CallKey& key, uint64_t* hash, bool* hashable) {
        if (last && last->key.same_words(key) && last->key.same_identities(key)) {
            last->used = ++clock;
            return SlotRef(last);
        }
        if (!hash_key(key, hash)) {
            if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();  // miss() reports it
            *hashable = false;
            return SlotRef(nullptr);
        }
        std::vector<SlotRef> candidates;
        auto range = slots.equal_range(*hash);
        for (auto it = range.first; it != range.second; ++it)
            if (it->second->key.same_words(key)) candidates.emplace_back(it->second);
        for (SlotRef& candidate : candidates) {
            int same = candidate.slot->key.equal_objects(key);
            if (same < 0) return SlotRef(nullptr);
            if (!same) continue;
            candidate.slot->used = ++clock;
            if (candidate.slot->references > 1) last = candidate.slot;  // else it left the table meanwhile
            return std::move(candidate);
        }
        return SlotRef(nullptr);
    }

    void remove(std::unordered_multimap<uint64_t, Slot*>::iterator it) {
        Slot* slot = it->second;
        slots.erase(it);
        if (last == slot) last = nullptr;
        drop(slot);
    }

    SlotRef insert(const CallKey& key, uint64_t hash) {
        auto range = slots.equal_range(hash);
        for (auto it = range.first; it != range.second; ++it)  // a concurrent or nested call may have been here
            if (it->second->key.same_words(key) && it->second->key.same_identities(key)) return SlotRef(it->second);
        while (!slots.empty() && slots.size() >= maxsize)
            remove(std::min_element(slots.begin(), slots.end(),
                                    [](auto& a, auto& b) { return a.second->used < b.second->used; }));
        auto* slot = new Slot(key, hash);
        slot->used = ++clock;
        slots.emplace(hash, slot);
        last = slot;
        return SlotRef(slot);
    }

    size_t entries() const {
        return size_t(std::count_if(slots.begin(), slots.end(), [](auto& item) { return item.second->entry; }));
    }

    void clear() {
        std::unordered_multimap<uint64_t, Slot*> old;
        old.swap(slots);
        last = nullptr;
        for (auto& [hash, slot] : old) drop(slot);
    }
};

// ---- JitFunction ----------------------------------------------------------------------------------------------------

struct Jit {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *fun, *miss;  // strong; null only after the garbage collector has cleared the object
    PyObject* dict;
    PyObject* weakrefs;
    Table* table;
    bool eager;
    size_t warmup;
    std::vector<int64_t>* static_positions;  // negative: counted from the last
    std::vector<PyObject*>* static_names;    // strong, str
};

Jit* as_jit(PyObject* object) { return reinterpret_cast<Jit*>(object); }

// Calls miss(args, kwargs); returns its pair.
PyObject* call_miss(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    if (!self->miss) return PyErr_Format(PyExc_RuntimeError, "this JitFunction has been cleared");
    Ref miss = Ref::borrow(self->miss);
    Ref positional = Ref::steal(PyTuple_New(Py_ssize_t(count)));
    Ref keywords = Ref::steal(PyDict_New());
    if (!positional || !keywords) return nullptr;
    for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), Py_NewRef(args[i]));
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
        if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, k), args[count + size_t(k)]) < 0) return nullptr;
    PyObject* arguments[3] = {nullptr, positional.get(), keywords.get()};
    Ref pair = Ref::steal(in_python(
        [&] { return PyObject_Vectorcall(miss.get(), arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr); }));
    if (!pair) return nullptr;
    if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2 ||
        (PyTuple_GET_ITEM(pair.get(), 1) != Py_None && Py_TYPE(PyTuple_GET_ITEM(pair.get(), 1)) != entry_type))
        return PyErr_Format(PyExc_TypeError, "miss returned %R; expected (result, CacheEntry or None)", pair.get());
    return pair.release();
}

PyObject* call_fun(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    if (!self->fun) return PyErr_Format(PyExc_RuntimeError, "this JitFunction has been cleared");
    Ref fun = Ref::borrow(self->fun);
    return in_python([&] { return PyObject_Vectorcall(fun.get(), args, count, names); });
}

// A call that has no key, or is made while the thread traces.
PyObject* call_python(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    if (self->eager) return call_fun(self, args, count, names);
    Ref pair = Ref::steal(call_miss(self, args, count, names));
    return pair ? Py_NewRef(PyTuple_GET_ITEM(pair.get(), 0)) : nullptr;
}

PyObject* jit_call_known(Jit* self, PyObject* const* args, size_t count, PyObject* names) {
    CallKey key;
    Build build = key.build(args, count, names, *self->static_positions, *self->static_names);
    if (build == Build::error) return nullptr;
    if (build == Build::unknown) return call_python(self, args, count, names);
    uint64_t hash = 0;
    bool hashable = true;
    SlotRef found = self->table->find(key, &hash, &hashable);
    if (!found.slot && PyErr_Occurred()) return nullptr;
    if (!hashable) return call_python(self, args, count, names);
    if (found.slot && found.slot->entry) {
        Ref entry = Ref::borrow(reinterpret_cast<PyObject*>(found.slot->entry));
        const Entry* e = as_entry(entry.get());
        if (++found.slot->calls <= e->uses || !e->uses)
            return is_executable(e->run) ? run_program(e, key) : run_callable(e, key);
    } else if (self->eager && (!found.slot || ++found.slot->calls <= found.slot->wait)) {
        if (!found.slot && self->warmup) {
            SlotRef fresh = self->table->insert(key, hash);
            fresh.slot->calls = 1;
            fresh.slot->wait = self->warmup;
            return call_fun(self, args, count, names);
        }
        if (found.slot) return call_fun(self, args, count, names);
    }
    Ref pair = Ref::steal(call_miss(self, args, count, names));
    if (!pair) return nullptr;
    PyObject* entry = PyTuple_GET_ITEM(pair.get(), 1);
    if (entry != Py_None) {
        if (!check_fits(as_entry(entry), key)) return nullptr;
        if (found.slot && found.slot->references > 1) {
            found.slot->set(as_entry(entry));
        } else {  // new, or it left the table meanwhile
            if (found.slot) hash = found.slot->hash;
            self->table->insert(key, hash).slot->set(as_entry(entry));
        }
    } else if (found.slot) {
        // Refused: what there was stays in use, and it takes longer until the next attempt.
        found.slot->calls = 0;
        found.slot->wait = std::min<size_t>(2 * found.slot->wait + 1, size_t(1) << 40);
    } else if (self->eager) {
        SlotRef fresh = self->table->insert(key, hash);
        fresh.slot->wait = 1;
    }
    return Py_NewRef(PyTuple_GET_ITEM(pair.get(), 0));
}

PyObject* jit_vectorcall(PyObject* object, PyObject* const* args, size_t flags, PyObject* names) {
    size_t count = size_t(PyVectorcall_NARGS(flags));
    Ref self = Ref::borrow(object);
    try {
        return trace_state.tracing ? call_python(as_jit(object), args, count, names)
                                   : jit_call_known(as_jit(object), args, count, names);
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

// Copies what makes a function look like itself: name, module, docstring, annotations and its own attributes.
bool copy_identity(PyObject* dict, PyObject* fun) {
    for (const char* name :
         {"__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__"}) {
        Ref value = Ref::steal(PyObject_GetAttrString(fun, name));
        if (value) {
            if (PyDict_SetItemString(dict, name, value.get()) < 0) return false;
        } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
        } else {
            return false;
        }
    }
    Ref attributes = Ref::steal(PyObject_GetAttrString(fun, "__dict__"));
    if (!attributes) PyErr_Clear();
    if (attributes && PyDict_Check(attributes.get()) && PyDict_Update(dict, attributes.get()) < 0) return false;
    return PyDict_SetItemString(dict, "__wrapped__", fun) == 0;
}

PyObject* jit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"fun", "miss", "static_argnums", "static_argnames", "maxsize", "warmup", nullptr};
    PyObject *fun, *miss, *argnums = nullptr, *argnames = nullptr, *warmup = Py_None;
    Py_ssize_t maxsize = 4096;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOnO:JitFunction", const_cast<char**>(names), &fun, &miss,
                                     &argnums, &argnames, &maxsize, &warmup))
        return nullptr;
    if (!PyCallable_Check(fun) || !PyCallable_Check(miss))
        return PyErr_Format(PyExc_TypeError, "JitFunction: expected two callables; got %R and %R", fun, miss);
    if (maxsize < 1) return PyErr_Format(PyExc_ValueError, "JitFunction: maxsize is %zd; expected at least 1", maxsize);
    Ref object = Ref::steal(type->tp_alloc(type, 0));
    if (!object) return nullptr;
    Jit* self = as_jit(object.get());
    self->vectorcall = jit_vectorcall;
    self->fun = Py_NewRef(fun);
    self->miss = Py_NewRef(miss);
    self->table = new Table;
    self->table->maxsize = size_t(maxsize);
    if (warmup != Py_None) {
        Py_ssize_t calls = PyLong_AsSsize_t(warmup);
        if (calls == -1 && PyErr_Occurred()) return nullptr;
        if (calls < 0) return PyErr_Format(PyExc_ValueError, "JitFunction: warmup is %zd; expected at least 0", calls);
        self->eager = true;
        self->warmup = size_t(calls);
    }
    self->static_positions = new std::vector<int64_t>;
    self->static_names = new std::vector<PyObject*>;
    self->dict = PyDict_New();
    if (!self->dict || !copy_identity(self->dict, fun)) return nullptr;
    if (argnums) {
        Ref tuple = Ref::steal(PySequence_Tuple(argnums));
        for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple.get()); ++i) {
            Py_ssize_t n = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple.get(), i));
            if (n == -1 && PyErr_Occurred()) return nullptr;
            self->static_positions->push_back(n);
        }
        if (!tuple) return nullptr;
    }
    if (argnames) {
        Ref tuple = Ref::steal(PySequence_Tuple(argnames));
        for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple.get()); ++i) {
            PyObject* name = PyTuple_GET_ITEM(tuple.get(), i);
            if (!PyUnicode_CheckExact(name))
                return PyErr_Format(PyExc_TypeError, "JitFunction: static_argnames[%zd] is %R; expected a str", i,
                                    name);
            self->static_names->push_back(Py_NewRef(name));
        }
        if (!tuple) return nullptr;
    }
    return object.release();
}

int jit_traverse(PyObject* object, visitproc visit, void* arg) {
    Jit* self = as_jit(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->fun);
    Py_VISIT(self->miss);
    Py_VISIT(self->dict);
    if (self->table)
        for (auto& [hash, slot] : self->table->slots) {
            if (slot->references > 1) continue;  // a call in progress holds it
            Py_VISIT(reinterpret_cast<PyObject*>(slot->entry));
            for (const KeyObject& o : slot->key.objects) Py_VISIT(o.object);
        }
    return 0;
}

int jit_clear(PyObject* object) {
    Jit* self = as_jit(object);
    if (self->table) self->table->clear();
    Py_CLEAR(self->fun);
    Py_CLEAR(self->miss);
    Py_CLEAR(self->dict);
    return 0;
}

void jit_dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    Jit* self = as_jit(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    jit_clear(object);
    delete self->table;
    delete self->static_positions;
    if (self->static_names)
        for (PyObject* name : *self->static_names) Py_DECREF(name);
    delete self->static_names;
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* jit_get(PyObject* self, PyObject* instance, PyObject*) {
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* jit_repr(PyObject* self) {
    return PyUnicode_FromFormat("<JitFunction of %R>", as_jit(self)->fun ? as_jit(self)->fun : Py_None);
}

PyObject* jit_cache_size(PyObject* self, PyObject*) { return PyLong_FromSize_t(as_jit(self)->table->entries()); }

PyObject* jit_clear_method(PyObject* self, PyObject*) {
    as_jit(self)->table->clear();
    Py_RETURN_NONE;
}

// A function at the top of a module pickles by its name, as plain functions do.
PyObject* jit_reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }
PyObject* jit_copy(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef jit_methods[] = {
    {"cache_size", jit_cache_size, METH_NOARGS,
     "cache_size($self, /)\n--\n\nThe number of programs that are remembered."},
    {"clear", jit_clear_method, METH_NOARGS, "clear($self, /)\n--\n\nForgets all programs."},
    {"__reduce__", jit_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\nPickles by name."},
    {"__copy__", jit_copy, METH_NOARGS, "__copy__($self, /)\n--\n\nThe function itself."},
    {"__deepcopy__", jit_copy, METH_O, "__deepcopy__($self, memo, /)\n--\n\nThe function itself."},
    {nullptr},
};
PyMemberDef jit_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Jit, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Jit, weakrefs), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Jit, vectorcall), READONLY, nullptr},
    {nullptr},
};
PyGetSetDef jit_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr},
    {nullptr},
};
PyType_Slot jit_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(jit_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(jit_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(jit_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(jit_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(jit_get)},
    {Py_tp_repr, reinterpret_cast<void*>(jit_repr)},
    {Py_tp_methods, jit_methods},
    {Py_tp_members, jit_members},
    {Py_tp_getset, jit_attributes},
    {Py_tp_doc, const_cast<char*>("A function that remembers, by the types of its arguments, which program to run.")},
    {0, nullptr},
};
PyType_Spec jit_spec = {"pullback._ext._core.JitFunction", sizeof(Jit), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE |
                            Py_TPFLAGS_METHOD_DESCRIPTOR,
                        jit_slots};

}  // namespace

bool add_call_cache_types(PyObject* module) {
    entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
    jit_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&jit_spec));
    return entry_type && jit_type &&
           PyModule_AddObjectRef(module, "CacheEntry", reinterpret_cast<PyObject*>(entry_type)) == 0 &&
           PyModule_AddObjectRef(module, "JitFunction", reinterpret_cast<PyObject*>(jit_type)) == 0;
}

}  // namespace pb
