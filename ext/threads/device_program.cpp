#include "threads/device_program.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
#include <string>
#include <vector>

#include "arrays/allocator.h"
#include "collectives/collectives.h"
#include "threads/device_team.h"
#include "arrays/donation.h"
#include "programs/executable.h"
#include "programs/spans.h"
#include "threads/fork_gate.h"
#include "gil.h"
#include "ref.h"
#include "threads/float_mode.h"
#include "threads/thread_pool.h"

namespace pb {
namespace {

struct Facts {
    int size = 1;
    std::vector<std::vector<int>> parts_in;  // of each argument: which part each device takes; empty: all take the whole
    std::vector<int> counts_in;              // of each argument: how many parts it has
    std::vector<bool> own_in;                // of each argument: whether each device takes one of its own, in their order
    std::vector<bool> mapped_out;
    std::vector<AvalInfo*> out;        // of the whole results; counted as users
    std::vector<PyObject*> shardings;  // strong
    PyObject* capsule = nullptr;       // strong or null: what holds `communication`
    const Communication* communication = nullptr;
};

struct DeviceProgram {
    PyObject_HEAD Executable* executable;  // strong
    Facts* facts;
};

DeviceProgram* as_device_program(PyObject* object) { return reinterpret_cast<DeviceProgram*>(object); }

// Memory of one run, given back at its end.
struct Memory {
    std::vector<std::pair<void*, size_t>> blocks;
    ~Memory() {
        for (auto& [block, bytes] : blocks) deallocate(block, bytes);
    }
    // Null if there is none.
    char* get(size_t bytes) {
        void* block = allocate(bytes);
        if (block) blocks.emplace_back(block, bytes);
        return static_cast<char*>(block);
    }
};

// Where each device finds one argument or result: in the whole array, or, where parts of it are not aligned, in copies.
struct Place {
    char* base = nullptr;
    size_t step = 0;             // from one device or part to the next; 0: the same for all
    char* whole = nullptr;       // the array, if base is a copy
    const int* parts = nullptr;  // the number of each device's part, if it is not that of the device
    size_t part(int device) const { return size_t(parts ? parts[device] : device); }
    char* of(int device) const { return base + (whole ? size_t(device) : part(device)) * step; }
};

bool place(Place& p, void* data, size_t bytes, bool mapped, int size, Memory& memory, const int* parts = nullptr) {
    constexpr size_t kAligned = Program::kInputAlignment;
    p.base = static_cast<char*>(data);
    p.step = mapped ? bytes : 0;
    p.parts = mapped ? parts : nullptr;
    if (!mapped || size == 1 || bytes % kAligned == 0) return true;
    p.whole = p.base;
    p.step = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    p.base = memory.get(p.step * size_t(size));
    return p.base != nullptr;
}

struct Pins {
    std::vector<Array*> arrays;
    void add(Array* a) {
        pin(a);
        arrays.push_back(a);
    }
    ~Pins() {
        for (Array* a : arrays) unpin(a);
    }
};

PyObject* run(DeviceProgram* self, PyObject* sequence) {
    Executable* executable = self->executable;
    const Program& p = *executable->program;
    const Facts& facts = *self->facts;
    const int size = facts.size;
    Span span(executable->name, "devices");
    const size_t n_in = p.in.size(), n_const = p.constants.size(), n_out = p.out.size();
    if (size_t(PyTuple_GET_SIZE(sequence)) != n_in)
        return PyErr_Format(PyExc_TypeError, "program '%U' takes %zu inputs; got %zd", executable->name, n_in,
                            PyTuple_GET_SIZE(sequence));
    Memory memory;
    Pins pins;
    std::vector<Place> in(n_in + n_const), out(n_out);
    auto no_memory = [&] {
        raise_no_memory("RESOURCE_EXHAUSTED: Out of memory for program '%U' on %d devices.", executable->name, size);
        return nullptr;
    };
    for (size_t i = 0; i < n_in; ++i) {
        PyObject* input = PyTuple_GET_ITEM(sequence, Py_ssize_t(i));
        const std::vector<int>& parts = facts.parts_in[i];
        int64_t bytes = p.in[i]->nbytes * facts.counts_in[i];
        if (!is_array(input) || as_array(input)->info->nbytes != bytes ||
            !PyArray_EquivTypes(as_array(input)->info->descr, p.in[i]->descr))
            return PyErr_Format(PyExc_TypeError, "program '%U' on %d devices: input %zu is %R; each expects %S",
                                executable->name, size, i, input, p.in[i]->aval);
        Array* a = as_array(input);
        if (!check_not_deleted(a)) return nullptr;
        if (!place(in[i], a->data, size_t(p.in[i]->nbytes), !parts.empty(), size, memory, parts.data())) return no_memory();
    }
    for (size_t k = 0; k < n_const; ++k) {
        if (!check_not_deleted(p.constants[k])) return nullptr;
        in[n_in + k].base = static_cast<char*>(p.constants[k]->data);
    }
    // Results that take over the memory of donated arguments (executable.h).
    std::vector<Array*> donors(n_out, nullptr), arrays(n_in);
    for (size_t i = 0; i < n_in; ++i) arrays[i] = as_array(PyTuple_GET_ITEM(sequence, Py_ssize_t(i)));
    if (!check_donated_once(p, executable->name, arrays.data())) return nullptr;
    for (size_t o = 0; o < n_out; ++o) {
        int64_t from = p.alias[o];
        if (from < 0 || (size > 1 && !(facts.own_in[size_t(from)] && facts.mapped_out[o]))) continue;
        if (may_take_over(p, from, arrays.data())) donors[o] = arrays[size_t(from)];
    }
    for (Array* a : arrays)
        if (std::find(donors.begin(), donors.end(), a) == donors.end()) pins.add(a);
    Ref results = Ref::steal(PyList_New(Py_ssize_t(n_out)));
    if (!results) return nullptr;
    for (size_t o = 0; o < n_out; ++o) {
        Array* donor = donors[o];
        AvalInfo* info = retain_info(facts.out[o]);
        Array* result = donor ? take_over(info, donor) : new_array(info);
        if (!result) return nullptr;
        result->device = Py_NewRef(facts.shardings[o]);
        PyList_SET_ITEM(results.get(), Py_ssize_t(o), reinterpret_cast<PyObject*>(result));
        size_t bytes = size_t(p.out[o]->nbytes);
        if (donor) {
            out[o] = in[size_t(p.alias[o])];
        } else if (facts.mapped_out[o] || size == 1) {
            if (!place(out[o], result->data, bytes, facts.mapped_out[o], size, memory)) return no_memory();
        } else {  // all compute it, the first one's is kept
            out[o].whole = static_cast<char*>(result->data);
            out[o].step = (bytes + kAlignment - 1) / kAlignment * kAlignment;
            out[o].base = memory.get(out[o].step * size_t(size));
            if (!out[o].base) return no_memory();
        }
    }
    size_t arena_step = (p.arena_bytes + kAlignment - 1) / kAlignment * kAlignment;
    char* arena = arena_step ? memory.get(arena_step * size_t(size)) : nullptr;
    if (arena_step && !arena) return no_memory();

    Team team(size, facts.communication);
    Frame first(&p.host_calls, true);  // of device 0, which the calling thread runs
    first.team = &team;
    first.name = executable->name;
    std::deque<Frame> others;
    for (int d = 1; d < size; ++d) others.emplace_back(&p.host_calls, &team, d);
    std::vector<int> codes(size_t(size), 0);
    auto work = [&](int device) -> bool {
        void* outer = current_frame;
        if (device) current_frame = &others[size_t(device) - 1];
        size_t d = size_t(device), n = n_in + n_const;
        std::vector<void*> pointers(n + n_out + 1);
        for (size_t i = 0; i < n; ++i) {
            size_t bytes = i < n_in ? size_t(p.in[i]->nbytes) : 0;
            if (in[i].whole) memcpy(in[i].of(device), in[i].whole + in[i].part(device) * bytes, bytes);
            pointers[i] = in[i].of(device);
        }
        for (size_t o = 0; o < n_out; ++o) pointers[n + o] = p.forward[o] < 0 ? out[o].of(device) : nullptr;
        for (size_t o = 0; o < n_out; ++o)  // the program finds the argument where it puts the result
            if (p.alias[o] >= 0 && !donors[o]) memcpy(pointers[n + o], pointers[size_t(p.alias[o])], size_t(p.out[o]->nbytes));
        void* scratch = arena ? arena + d * arena_step : nullptr;
        pointers[n + n_out] = scratch;
        FlushDenormals flush;
        codes[d] = p.function(pointers.data(), pointers.data() + n, scratch);
        for (size_t o = 0; o < n_out && codes[d] == 0; ++o) {
            size_t bytes = size_t(p.out[o]->nbytes);
            char* target = out[o].whole ? out[o].whole + d * bytes : out[o].of(device);
            if (out[o].whole && !facts.mapped_out[o] && device) continue;
            const void* source = p.forward[o] >= 0 ? pointers[size_t(p.forward[o])] : pointers[n + o];
            if (source != target && bytes) memcpy(target, source, bytes);
        }
        current_frame = outer;
        return codes[d] == 0;
    };
    LibraryCall call(p.libraries);
    PyThreadState* state = PyEval_SaveThread();
    bool started = team.run(work, [] { return pb_interrupt_pending() != 0; });
    restore_thread(state);
    const char* name = PyUnicode_AsUTF8(executable->name);
    delete_donated(p, arrays.data());
    if (!started) return PyErr_Format(PyExc_RuntimeError, "program '%s': no threads for %d devices", name, size);
    if (!team.is_abandoned() && !first.exception) return results.release();
    if (first.exception) {
        first.raise(codes[0], name);
        return nullptr;
    }
    for (Frame& frame : others)
        if (frame.exception) {
            frame.raise(1, name);
            return nullptr;
        }
    if (Processes::all().has_failed()) return PyErr_Format(PyExc_RuntimeError, "distributed: %s", team.reason().c_str());
    if (!team.reason().empty())
        return PyErr_Format(PyExc_RuntimeError,
                            "pmap of %s: %s. Every device must take part in the same collective operations, so no loop "
                            "or branch around them may depend on values that differ between devices.",
                            name, team.reason().c_str());
    for (int code : codes)
        if (code) {
            first.raise(code, name);
            return nullptr;
        }
    return PyErr_Format(PyExc_RuntimeError, "program '%s' was abandoned", name);
}

// ---- the Python type ------------------------------------------------------------------------------------------------

bool read_flags(PyObject* object, size_t count, const char* argument, std::vector<bool>& out) {
    Ref sequence = Ref::steal(PySequence_Tuple(object));
    if (!sequence) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
        int flag = PyObject_IsTrue(PyTuple_GET_ITEM(sequence.get(), i));
        if (flag < 0) return false;
        out.push_back(flag == 1);
    }
    if (out.size() == count) return true;
    PyErr_Format(PyExc_ValueError, "DeviceProgram: %s has %zu entries; expected %zu", argument, out.size(), count);
    return false;
}

// For each argument True (each device takes its own part), False (all take the whole) or the numbers of their parts.
bool read_parts(PyObject* object, size_t count, Facts& facts) {
    Ref sequence = Ref::steal(PySequence_Tuple(object));
    if (!sequence) return false;
    if (size_t(PyTuple_GET_SIZE(sequence.get())) != count)
        return PyErr_Format(PyExc_ValueError, "DeviceProgram: mapped_in has %zd entries; expected %zu",
                            PyTuple_GET_SIZE(sequence.get()), count), false;
    for (size_t i = 0; i < count; ++i) {
        PyObject* entry = PyTuple_GET_ITEM(sequence.get(), Py_ssize_t(i));
        std::vector<int> parts;
        bool own = true;
        int most = 0;
        if (PyTuple_Check(entry)) {
            if (PyTuple_GET_SIZE(entry) != facts.size)
                return PyErr_Format(PyExc_ValueError, "DeviceProgram: mapped_in[%zu] is %R, for %d devices", i, entry,
                                    facts.size), false;
            for (int d = 0; d < facts.size; ++d) {
                long part = PyLong_AsLong(PyTuple_GET_ITEM(entry, d));
                if (part == -1 && PyErr_Occurred()) return false;
                if (part < 0 || part >= facts.size)
                    return PyErr_Format(PyExc_ValueError, "DeviceProgram: mapped_in[%zu] is %R, for %d devices", i,
                                        entry, facts.size), false;
                parts.push_back(int(part));
                own = own && part == d;
                most = std::max(most, int(part));
            }
        } else {
            int flag = PyObject_IsTrue(entry);
            if (flag < 0) return false;
            for (int d = 0; flag && d < facts.size; ++d) parts.push_back(d);
            own = flag == 1;
            most = flag ? facts.size - 1 : 0;
        }
        facts.parts_in.push_back(std::move(parts));
        facts.counts_in.push_back(most + 1);
        facts.own_in.push_back(own);
    }
    return true;
}

PyObject* device_program_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *executable, *mapped_in, *out_avals, *mapped_out, *shardings, *communication = Py_None;
    int size;
    if (!PyArg_ParseTuple(args, "OiOOOO|O:DeviceProgram", &executable, &size, &mapped_in, &out_avals, &mapped_out,
                          &shardings, &communication))
        return nullptr;
    if (!is_executable(executable) || !reinterpret_cast<Executable*>(executable)->program->function)
        return PyErr_Format(PyExc_TypeError, "DeviceProgram: expected an Executable of machine code, got %R", executable);
    if (size < 1 || size > 4096)
        return PyErr_Format(PyExc_ValueError, "DeviceProgram: size is %d; expected 1 to 4096", size);
    Ref self = Ref::steal(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    DeviceProgram* d = as_device_program(self.get());
    d->executable = reinterpret_cast<Executable*>(Py_NewRef(executable));
    const Program& p = *d->executable->program;
    Facts* facts = d->facts = new Facts;
    facts->size = size;
    if (communication != Py_None) {
        facts->communication = static_cast<const Communication*>(PyCapsule_GetPointer(communication, kCommunication));
        if (!facts->communication) return nullptr;
        facts->capsule = Py_NewRef(communication);
        if (facts->communication->layout.local.size() != size_t(size))
            return PyErr_Format(PyExc_ValueError, "DeviceProgram: communication is for %zu devices, size is %d",
                                facts->communication->layout.local.size(), size);
    }
    if (!read_parts(mapped_in, p.in.size(), *facts) ||
        !read_flags(mapped_out, p.out.size(), "mapped_out", facts->mapped_out))
        return nullptr;
    Ref avals = Ref::steal(PySequence_Tuple(out_avals)), places = Ref::steal(PySequence_Tuple(shardings));
    if (!avals || !places) return nullptr;
    size_t n_out = p.out.size();
    if (size_t(PyTuple_GET_SIZE(avals.get())) != n_out || size_t(PyTuple_GET_SIZE(places.get())) != n_out)
        return PyErr_Format(PyExc_ValueError, "DeviceProgram: expected %zu out_avals and shardings", n_out);
    for (size_t o = 0; o < n_out; ++o) {
        AvalInfo* info = aval_info(PyTuple_GET_ITEM(avals.get(), Py_ssize_t(o)));
        if (!info) return nullptr;
        facts->out.push_back(info);
        if (info->nbytes != p.out[o]->nbytes * (facts->mapped_out[o] ? size : 1))
            return PyErr_Format(PyExc_ValueError, "DeviceProgram: out_avals[%zu] is %S, for %S on each device", o,
                                info->aval, p.out[o]->aval);
        facts->shardings.push_back(Py_NewRef(PyTuple_GET_ITEM(places.get(), Py_ssize_t(o))));
    }
    return self.release();
}

int device_program_traverse(PyObject* self, visitproc visit, void* arg) {
    DeviceProgram* d = as_device_program(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(d->executable);
    if (d->facts)
        for (PyObject* sharding : d->facts->shardings) Py_VISIT(sharding);
    return 0;
}

void device_program_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    DeviceProgram* d = as_device_program(self);
    if (d->facts) {
        for (AvalInfo* info : d->facts->out) release_info(info);
        for (PyObject* sharding : d->facts->shardings) Py_DECREF(sharding);
        Py_XDECREF(d->facts->capsule);
        delete d->facts;
    }
    Py_XDECREF(d->executable);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* device_program_call(PyObject* self, PyObject* args, PyObject* kwargs) {
    if (PyTuple_GET_SIZE(args) != 1 || (kwargs && PyDict_GET_SIZE(kwargs)))
        return PyErr_Format(PyExc_TypeError, "a DeviceProgram takes one argument, the list of its inputs");
    Ref keep = Ref::borrow(self), sequence = Ref::steal(PySequence_Tuple(PyTuple_GET_ITEM(args, 0)));
    if (!sequence) return nullptr;
    try {
        return run(as_device_program(self), sequence.get());
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

PyMemberDef members[] = {
    {"executable", T_OBJECT_EX, offsetof(DeviceProgram, executable), READONLY, "The program of one device."},
    {nullptr},
};
PyType_Slot program_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(device_program_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(device_program_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(device_program_traverse)},
    {Py_tp_call, reinterpret_cast<void*>(device_program_call)},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("An Executable that several devices run at once, each on its part of the inputs.")},
    {0, nullptr},
};
PyType_Spec spec = {"pullback._ext._core.DeviceProgram", sizeof(DeviceProgram), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, program_slots};

}  // namespace

bool add_device_program_type(PyObject* module) {
    Ref type = Ref::steal(PyType_FromSpec(&spec));
    return type && PyModule_AddObjectRef(module, "DeviceProgram", type.get()) == 0;
}

}  // namespace pb
