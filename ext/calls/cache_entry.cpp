#include "calls/cache_entry.h"

#include <structmember.h>

#include "calls/call_arguments.h"
#include "programs/executable.h"
#include "gil.h"
#include "ref.h"
#include "small_vector.h"

namespace pb {

PyTypeObject* entry_type = nullptr;

namespace {

// ---- CacheEntry -----------------------------------------------------------------------------------------------------

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
        if (!arguments.set(i, key.leaves[e->kept ? e->kept[i] : i], p.in[i])) return nullptr;
    size_t count = p.out.size();
    SmallVector<PyObject*, 48> outputs(count);
    if (!execute(executable, arguments, outputs.data())) return nullptr;
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

}  // namespace

PyObject* run_sized(const Entry* e, const CallKey& key, const AvalInfo* like) {
    auto* executable = reinterpret_cast<Executable*>(e->run);
    const Program& p = *executable->program;
    Arguments arguments(p.in.size());
    for (size_t i = 0; i < p.in.size(); ++i)
        if (!arguments.set(i, key.leaves[i], p.in[i])) return nullptr;
    size_t count = p.out.size();
    SmallVector<PyObject*, 48> outputs(count);
    if (!execute_sized(executable, like->ndim, like->dims, arguments, outputs.data()))
        return nullptr;
    return assemble(e, outputs.data(), count);
}

bool has_taken_long(const Entry* e) {
    if (!is_executable(e->run)) return false;
    const Plan* plan = reinterpret_cast<const Executable*>(e->run)->program->plan.get();
    return plan && plan->host_ns.load(std::memory_order_relaxed) > Entry::kCompilation;
}

PyObject* run_entry(const Entry* e, const CallKey& key) {
    return is_executable(e->run) ? run_program(e, key) : run_callable(e, key);
}

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

bool add_entry_type(PyObject* module) {
    entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
    return entry_type && PyModule_AddObjectRef(module, "CacheEntry", reinterpret_cast<PyObject*>(entry_type)) == 0;
}

}  // namespace pb
