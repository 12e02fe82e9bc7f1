#include "programs/executable.h"

#include <structmember.h>

#include <cstddef>

#include "calls/call_arguments.h"
#include "programs/functions.h"
#include "ref.h"
#include "small_vector.h"

namespace pb {

PyTypeObject* executable_type = nullptr;

// ---- the Python type ------------------------------------------------------------------------------------------------

namespace {

Executable* as_executable(PyObject* object) { return reinterpret_cast<Executable*>(object); }

bool read_avals(PyObject* avals, std::vector<AvalInfo*>& out) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(avals); ++i) {
        AvalInfo* info = aval_info(PyTuple_GET_ITEM(avals, i));
        if (!info) return false;
        out.push_back(info);
    }
    return true;
}

// Reads a sequence of integers in [low, high).
bool read_indices(PyObject* object, const char* argument, int64_t low, int64_t high, std::vector<int64_t>& out) {
    Ref sequence = Ref::steal(PySequence_Tuple(object));
    if (!sequence) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
        int64_t value = PyLong_AsLongLong(PyTuple_GET_ITEM(sequence.get(), i));
        if (value == -1 && PyErr_Occurred()) return false;
        if (value < low || value >= high) {
            PyErr_Format(PyExc_ValueError, "Executable: %s[%zd] is %lld; expected %lld to %lld", argument, i,
                         (long long)value, (long long)low, (long long)high - 1);
            return false;
        }
        out.push_back(value);
    }
    return true;
}

bool read_per_output(PyObject* object, const char* argument, int64_t high, size_t outputs, std::vector<int64_t>& out) {
    if (object == Py_None) {
        out.assign(outputs, -1);
        return true;
    }
    if (!read_indices(object, argument, -1, high, out)) return false;
    if (out.size() == outputs) return true;
    PyErr_Format(PyExc_ValueError, "Executable: %s has %zu entries for %zu outputs", argument, out.size(), outputs);
    return false;
}

bool read_host_calls(PyObject* object, std::vector<HostRecord*>& out) {
    Ref sequence = Ref::steal(PySequence_Tuple(object));
    if (!sequence) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
        PyObject* pair = PyTuple_GET_ITEM(sequence.get(), i);
        PyObject* function;
        Py_ssize_t count;
        if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "On", &function, &count) || !PyCallable_Check(function) ||
            count < 0) {
            PyErr_Format(PyExc_TypeError, "Executable: host_calls[%zd] is %R; expected (callable, number of buffers)",
                         i, pair);
            return false;
        }
        out.push_back(new HostRecord{Py_NewRef(function), count});
    }
    return true;
}

// What forward, alias and donate must satisfy for `execute` to be safe.
bool validate(const Program& p) {
    std::vector<bool> donated(p.in.size()), taken(p.in.size());
    for (int64_t i : p.donate) donated[size_t(i)] = true;
    for (size_t o = 0; o < p.out.size(); ++o) {
        if (int64_t from = p.forward[o]; from >= 0) {
            size_t n = p.in.size();
            const AvalInfo* source = size_t(from) < n ? p.in[size_t(from)] : p.constants[size_t(from) - n]->info;
            if (source->nbytes != p.out[o]->nbytes) {
                PyErr_Format(PyExc_ValueError,
                             "Executable: output %zu has %lld bytes, but input %lld, which it forwards, has %lld", o,
                             (long long)p.out[o]->nbytes, (long long)from, (long long)source->nbytes);
                return false;
            }
            if (size_t(from) < n) taken[size_t(from)] = true;
        }
    }
    for (size_t o = 0; o < p.out.size(); ++o) {
        int64_t from = p.alias[o];
        if (from < 0) continue;
        if (!donated[size_t(from)] || taken[size_t(from)] || p.forward[o] >= 0) {
            PyErr_Format(PyExc_ValueError,
                         "Executable: output %zu aliases input %lld, which must be donated and go to no other output",
                         o, (long long)from);
            return false;
        }
        taken[size_t(from)] = true;
    }
    return true;
}

// (length, total, grain, kernel's arena bytes, bytes of an element by pointer, whether the kernel is a function's)
std::unique_ptr<Blocks> read_blocks(PyObject* description, const Program& p) {
    auto blocks = std::make_unique<Blocks>();
    long long length, total, grain;
    Py_ssize_t arena;
    PyObject* steps;
    int counted = 0;
    if (!PyArg_ParseTuple(description, "LLLnO|p", &length, &total, &grain, &arena, &steps, &counted)) return nullptr;
    blocks->length = length;
    blocks->total = total;
    blocks->grain = grain;
    blocks->counted = counted;
    blocks->arena_bytes = size_t(arena);
    blocks->inputs = p.in.size() + p.constants.size();
    if (!read_indices(steps, "blocks", 0, 64, blocks->steps)) return nullptr;
    bool fits = length > 0 && total >= 0 && arena >= 0 && size_t(arena) <= Blocks::kMaxArena && p.constants.empty() &&
                p.donate.empty() && p.host_calls.empty() && !p.plan && !p.arena_bytes &&
                blocks->steps.size() == p.in.size() + p.out.size();
    for (size_t i = 0; fits && i < blocks->steps.size(); ++i) {
        const AvalInfo* info = i < p.in.size() ? p.in[i] : p.out[i - p.in.size()];
        int64_t step = blocks->steps[i];
        fits = (step == 0 && i < p.in.size()) || (step > 0 && info->nbytes == total * step);
    }
    for (int64_t from : p.forward) fits = fits && from < 0;
    if (counted) {
        fits = fits && length >= kFewest && p.out.size() == 1 && blocks->steps.size() >= 2 &&
               blocks->steps.size() <= kMostOperands;
        for (int64_t step : blocks->steps) fits = fits && step > 0;
    }
    if (fits) return blocks;
    PyErr_SetString(PyExc_ValueError, "Executable: the blocks do not fit the program");
    return nullptr;
}

void executable_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    Executable* e = as_executable(self);
    if (e->weakrefs) PyObject_ClearWeakRefs(self);
    if (e->program) {
        for (AvalInfo* info : e->program->in) release_info(info);
        for (AvalInfo* info : e->program->out) release_info(info);
        for (HostRecord* record : e->program->host_calls) {
            Py_XDECREF(record->function);
            delete record;
        }
        delete e->program;
    }
    Py_XDECREF(e->in_avals);
    Py_XDECREF(e->out_avals);
    Py_XDECREF(e->constants);
    Py_XDECREF(e->keepalive);
    Py_XDECREF(e->name);
    Py_XDECREF(e->placing);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

// Only what can be part of a cycle. There is no tp_clear: a running program must not lose its parts; cycles go through
// the functions that refer back to an Executable, and those are cleared.
int executable_traverse(PyObject* self, visitproc visit, void* arg) {
    Executable* e = as_executable(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(e->keepalive);
    Py_VISIT(e->placing);
    if (e->program) {
        for (HostRecord* record : e->program->host_calls) Py_VISIT(record->function);
        if (e->program->plan)
            for (PlanStep& step : e->program->plan->steps) Py_VISIT(step.owner);
    }
    return 0;
}

PyObject* executable_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"address",     "in_avals",      "out_avals",       "arena_bytes", "keepalive",
                                  "constants",   "host_calls",    "forward",         "alias",       "donate",
                                  "release_gil", "interruptible", "apart",           "libraries",   "name",
                                  "plan",        "blocks",        "placing",         "places",    nullptr};
    PyObject *address, *in_avals, *out_avals, *keepalive = Py_None, *constants = nullptr, *host_calls = nullptr;
    PyObject *forward = Py_None, *alias = Py_None, *donate = nullptr, *name = nullptr, *plan = nullptr,
             *blocks = nullptr, *placing = nullptr;
    Py_ssize_t arena_bytes = 0;
    int release_gil = 0, interruptible = 0, apart = 0, libraries = 0, places = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|nOO$OOOOppppUOOOp:Executable", const_cast<char**>(names), &address,
                                     &in_avals, &out_avals, &arena_bytes, &keepalive, &constants, &host_calls, &forward,
                                     &alias, &donate, &release_gil, &interruptible, &apart, &libraries, &name, &plan, &blocks,
                                     &placing, &places))
        return nullptr;
    void* function = PyLong_AsVoidPtr(address);
    if (!function && (PyErr_Occurred() || !plan)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "Executable: the address is null");
        return nullptr;
    }
    if (arena_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "Executable: arena_bytes must be at least 0");
        return nullptr;
    }
    Ref self = Ref::steal(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    Executable* e = as_executable(self.get());
    Program* p = e->program = new Program;
    p->function = reinterpret_cast<int (*)(void**, void**, void*)>(function);
    p->arena_bytes = size_t(arena_bytes);
    p->interruptible = interruptible;
    p->apart = apart;
    p->libraries = libraries || plan;
    e->keepalive = Py_NewRef(keepalive);
    e->placing = Py_XNewRef(placing);
    e->places = places;
    e->name = name ? Py_NewRef(name) : PyUnicode_FromString("");
    e->in_avals = PySequence_Tuple(in_avals);
    e->out_avals = e->in_avals ? PySequence_Tuple(out_avals) : nullptr;
    if (!e->name || !PyUnicode_AsUTF8(e->name) || !e->out_avals) return nullptr;
    e->constants = constants ? PySequence_Tuple(constants) : PyTuple_New(0);
    if (!e->constants || !read_avals(e->in_avals, p->in) || !read_avals(e->out_avals, p->out)) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(e->constants); ++i) {
        PyObject* constant = PyTuple_GET_ITEM(e->constants, i);
        if (!is_array(constant)) {
            PyErr_Format(PyExc_TypeError, "Executable: constants[%zd] is a %s; expected an Array", i,
                         Py_TYPE(constant)->tp_name);
            return nullptr;
        }
        p->constants.push_back(as_array(constant));
    }
    int64_t n_in = int64_t(p->in.size());
    if (host_calls && !read_host_calls(host_calls, p->host_calls)) return nullptr;
    if (!read_per_output(forward, "forward", n_in + int64_t(p->constants.size()), p->out.size(), p->forward))
        return nullptr;
    if (!read_per_output(alias, "alias", n_in, p->out.size(), p->alias)) return nullptr;
    if (donate && !read_indices(donate, "donate", 0, n_in, p->donate)) return nullptr;
    if (!validate(*p)) return nullptr;
    p->release_gil = release_gil || apart || !p->host_calls.empty();
    if (plan) {
        p->plan = read_plan(plan);
        if (!p->plan) return nullptr;
        if (p->plan->has_host) p->release_gil = false;
        if (!p->host_calls.empty() || !p->donate.empty()) {
            PyErr_SetString(PyExc_ValueError, "Executable: a plan has neither host calls nor donated inputs");
            return nullptr;
        }
    }
    if (blocks) {
        p->blocks = read_blocks(blocks, *p);
        if (!p->blocks) return nullptr;
    }
    return self.release();
}

PyObject* executable_call(PyObject* self, PyObject* inputs) {
    Executable* e = as_executable(self);
    const Program& p = *e->program;
    Ref sequence = Ref::steal(PySequence_Tuple(inputs));
    if (!sequence) return nullptr;
    size_t n = p.in.size();
    if (size_t(PyTuple_GET_SIZE(sequence.get())) != n) {
        PyErr_Format(PyExc_TypeError, "program '%U' takes %zu inputs; got %zd", e->name, n,
                     PyTuple_GET_SIZE(sequence.get()));
        return nullptr;
    }
    Arguments arguments(n);
    for (size_t i = 0; i < n; ++i) {
        PyObject* input = PyTuple_GET_ITEM(sequence.get(), Py_ssize_t(i));
        if (!is_array(input)) {
            int type = p.in[i]->descr->type_num;
            bool is_real = PyFloat_CheckExact(input) && (type == NPY_FLOAT || type == NPY_DOUBLE);
            if (p.in[i]->ndim == 0 && (is_real || (PyLong_CheckExact(input) && (type == NPY_INT || type == NPY_LONG)))) {
                if (!arguments.set(i, {input, is_real ? LeafKind::real : LeafKind::integer}, p.in[i]))
                    return nullptr;
                continue;
            }
            PyErr_Format(PyExc_TypeError, "program '%U': input %zu is a %s; expected an Array", e->name, i,
                         Py_TYPE(input)->tp_name);
            return nullptr;
        }
        Array* a = arguments.arrays[i] = as_array(input);
        // Weak types may differ; the layout may not.
        if (a->info != p.in[i] &&
            (a->info->ndim != p.in[i]->ndim || !PyArray_CompareLists(a->info->dims, p.in[i]->dims, a->info->ndim) ||
             (a->info->descr != p.in[i]->descr && !PyArray_EquivTypes(a->info->descr, p.in[i]->descr)))) {
            PyErr_Format(PyExc_TypeError, "program '%U': input %zu is %S; expected %S", e->name, i, a->info->aval,
                         p.in[i]->aval);
            return nullptr;
        }
        arguments.data[i] = a->data;
    }
    Ref list = Ref::steal(PyList_New(Py_ssize_t(p.out.size())));
    if (!list) return nullptr;
    SmallVector<PyObject*, 32> outputs(p.out.size());
    if (!execute(e, arguments, outputs.data())) return nullptr;
    for (size_t o = 0; o < p.out.size(); ++o) PyList_SET_ITEM(list.get(), Py_ssize_t(o), outputs[o]);
    return list.release();
}

PyObject* executable_tp_call(PyObject* self, PyObject* args, PyObject* kwargs) {
    if (PyTuple_GET_SIZE(args) != 1 || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "an Executable takes one argument, the list of its inputs");
        return nullptr;
    }
    return executable_call(self, PyTuple_GET_ITEM(args, 0));
}

PyObject* executable_repr(PyObject* self) {
    Executable* e = as_executable(self);
    return PyUnicode_FromFormat("<Executable '%U': %zd inputs, %zd outputs, %zd constants>", e->name,
                                PyTuple_GET_SIZE(e->in_avals), PyTuple_GET_SIZE(e->out_avals),
                                PyTuple_GET_SIZE(e->constants));
}

PyObject* get_address(PyObject* self, void*) {
    return PyLong_FromVoidPtr(reinterpret_cast<void*>(as_executable(self)->program->function));
}
PyObject* get_arena_bytes(PyObject* self, void*) {
    return PyLong_FromSize_t(as_executable(self)->program->arena_bytes);
}

PyMethodDef methods[] = {
    {"call", executable_call, METH_O,
     "call($self, inputs, /)\n--\n\nRuns the program on a list of Arrays (for scalars also floats and ints); returns the list of its outputs."},
    {nullptr},
};
PyMemberDef members[] = {
    {"in_avals", T_OBJECT_EX, offsetof(Executable, in_avals), READONLY, "The avals of the inputs."},
    {"out_avals", T_OBJECT_EX, offsetof(Executable, out_avals), READONLY, "The avals of the outputs."},
    {"constants", T_OBJECT_EX, offsetof(Executable, constants), READONLY,
     "The arrays that are passed after the inputs."},
    {"keepalive", T_OBJECT_EX, offsetof(Executable, keepalive), READONLY, "What owns the machine code."},
    {"name", T_OBJECT_EX, offsetof(Executable, name), READONLY, "A name for messages."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Executable, weakrefs), READONLY, nullptr},
    {nullptr},
};
PyGetSetDef attributes[] = {
    {"address", get_address, nullptr, "The address of the machine code."},
    {"arena_bytes", get_arena_bytes, nullptr, "The scratch memory a run needs."},
    {nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(executable_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(executable_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(executable_traverse)},
    {Py_tp_call, reinterpret_cast<void*>(executable_tp_call)},
    {Py_tp_repr, reinterpret_cast<void*>(executable_repr)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, attributes},
    {Py_tp_doc, const_cast<char*>("A native program: int f(void** inputs, void** outputs, void* arena).")},
    {0, nullptr},
};
PyType_Spec spec = {"pullback._ext._core.Executable", sizeof(Executable), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                    slots};

}  // namespace

bool add_executable_type(PyObject* module) {
    executable_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return executable_type &&
           PyModule_AddObjectRef(module, "Executable", reinterpret_cast<PyObject*>(executable_type)) == 0;
}

}  // namespace pb
