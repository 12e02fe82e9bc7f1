#include "threads/device_program.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <new>
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

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

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
    p.step = aligned(bytes);
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

// One run of the program: where devices find arguments and results, and what lives until its end. Functions that return
// bool say false with an error set; they are called in this order.
struct Run {
    const Executable* executable;
    const Program& p;
    const Facts& facts;
    const size_t n_in, n_const, n_out, size;
    Memory memory;
    Pins pins;
    std::vector<Place> in, out;   // of arguments and then constants; of results
    std::vector<Array*> arrays;   // the arguments
    std::vector<Array*> donors;   // of each result: the donated argument whose memory it takes over, or null
    Ref results;                  // a list
    char* arena = nullptr;        // memory that the program works in, of all devices
    size_t arena_step = 0;

    explicit Run(const DeviceProgram* self)
        : executable(self->executable),
          p(*executable->program),
          facts(*self->facts),
          n_in(p.in.size()),
          n_const(p.constants.size()),
          n_out(p.out.size()),
          size(size_t(facts.size)),
          in(n_in + n_const),
          out(n_out),
          arrays(n_in),
          donors(n_out, nullptr) {}

    bool find_inputs(PyObject* sequence);
    bool find_donors();
    bool make_results();
    bool make_arena();
    // On the thread of each device, without the GIL: the program's return code.
    int on_device(size_t device) const;

    bool no_memory() const {
        raise_no_memory("RESOURCE_EXHAUSTED: Out of memory for program '%U' on %d devices.", executable->name,
                        facts.size);
        return false;
    }
};

bool Run::find_inputs(PyObject* sequence) {
    if (size_t(PyTuple_GET_SIZE(sequence)) != n_in)
        return PyErr_Format(PyExc_TypeError, "program '%U' takes %zu inputs; got %zd", executable->name, n_in,
                            PyTuple_GET_SIZE(sequence)), false;
    for (size_t i = 0; i < n_in; ++i) {
        PyObject* input = PyTuple_GET_ITEM(sequence, Py_ssize_t(i));
        const std::vector<int>& parts = facts.parts_in[i];
        int64_t bytes = p.in[i]->nbytes * facts.counts_in[i];
        if (!is_array(input) || as_array(input)->info->nbytes != bytes ||
            !PyArray_EquivTypes(as_array(input)->info->descr, p.in[i]->descr))
            return PyErr_Format(PyExc_TypeError, "program '%U' on %d devices: input %zu is %R; each expects %S",
                                executable->name, facts.size, i, input, p.in[i]->aval), false;
        Array* a = arrays[i] = as_array(input);
        if (!check_not_deleted(a)) return false;
        if (!place(in[i], a->data, size_t(p.in[i]->nbytes), !parts.empty(), facts.size, memory, parts.data()))
            return no_memory();
    }
    for (size_t k = 0; k < n_const; ++k) {
        if (!check_not_deleted(p.constants[k])) return false;
        in[n_in + k].base = static_cast<char*>(p.constants[k]->data);
    }
    return true;
}

// Which results take over the memory of donated arguments (executable.h). The other arguments are pinned.
bool Run::find_donors() {
    if (!check_donated_once(p, executable->name, arrays.data())) return false;
    for (size_t o = 0; o < n_out; ++o) {
        int64_t from = p.alias[o];
        if (from < 0 || (size > 1 && !(facts.own_in[size_t(from)] && facts.mapped_out[o]))) continue;
        if (may_take_over(p, from, arrays.data())) donors[o] = arrays[size_t(from)];
    }
    for (Array* a : arrays)
        if (std::find(donors.begin(), donors.end(), a) == donors.end()) pins.add(a);
    return true;
}

bool Run::make_results() {
    results = Ref::steal(PyList_New(Py_ssize_t(n_out)));
    if (!results) return false;
    for (size_t o = 0; o < n_out; ++o) {
        Array* donor = donors[o];
        AvalInfo* info = retain_info(facts.out[o]);
        Array* result = donor ? take_over(info, donor) : new_array(info);
        if (!result) return false;
        result->device = Py_NewRef(facts.shardings[o]);
        PyList_SET_ITEM(results.get(), Py_ssize_t(o), reinterpret_cast<PyObject*>(result));
        size_t bytes = size_t(p.out[o]->nbytes);
        if (donor) {
            out[o] = in[size_t(p.alias[o])];
        } else if (facts.mapped_out[o] || size == 1) {
            if (!place(out[o], result->data, bytes, facts.mapped_out[o], facts.size, memory)) return no_memory();
        } else {  // all compute it, the first one's is kept
            out[o].whole = static_cast<char*>(result->data);
            out[o].step = aligned(bytes);
            out[o].base = memory.get(out[o].step * size);
            if (!out[o].base) return no_memory();
        }
    }
    return true;
}

bool Run::make_arena() {
    arena_step = aligned(p.arena_bytes);
    if (arena_step) arena = memory.get(arena_step * size);
    return !arena_step || arena || no_memory();
}

int Run::on_device(size_t device) const {
    const int d = int(device);
    const size_t n = n_in + n_const;
    std::vector<void*> pointers(n + n_out + 1);
    for (size_t i = 0; i < n; ++i) {
        size_t bytes = i < n_in ? size_t(p.in[i]->nbytes) : 0;
        if (in[i].whole) memcpy(in[i].of(d), in[i].whole + in[i].part(d) * bytes, bytes);
        pointers[i] = in[i].of(d);
    }
    for (size_t o = 0; o < n_out; ++o) pointers[n + o] = p.forward[o] < 0 ? out[o].of(d) : nullptr;
    for (size_t o = 0; o < n_out; ++o)  // the program finds the argument where it puts the result
        if (p.alias[o] >= 0 && !donors[o]) memcpy(pointers[n + o], pointers[size_t(p.alias[o])], size_t(p.out[o]->nbytes));
    void* scratch = arena ? arena + device * arena_step : nullptr;
    pointers[n + n_out] = scratch;
    FlushDenormals flush;
    const int code = p.function(pointers.data(), pointers.data() + n, scratch);
    for (size_t o = 0; o < n_out && code == 0; ++o) {
        size_t bytes = size_t(p.out[o]->nbytes);
        char* target = out[o].whole ? out[o].whole + device * bytes : out[o].of(d);
        if (out[o].whole && !facts.mapped_out[o] && device) continue;
        const void* source = p.forward[o] >= 0 ? pointers[size_t(p.forward[o])] : pointers[n + o];
        if (source != target && bytes) memcpy(target, source, bytes);
    }
    return code;
}

// Sets the error of a run that did not end well: what a device raised, of several the first one's; or why they parted.
void raise_failure(const Team& team, Frame& first, std::deque<Frame>& others, const std::vector<int>& codes,
                   const char* name) {
    if (first.exception) return first.raise(codes[0], name);
    for (Frame& frame : others)
        if (frame.exception) return frame.raise(1, name);
    if (Processes::all().has_failed()) {
        PyErr_Format(PyExc_RuntimeError, "distributed: %s", team.reason().c_str());
    } else if (!team.reason().empty()) {
        PyErr_Format(PyExc_RuntimeError,
                     "pmap of %s: %s. Every device must take part in the same collective operations, so no loop or "
                     "branch around them may depend on values that differ between devices.",
                     name, team.reason().c_str());
    } else {
        auto failed = std::find_if(codes.begin(), codes.end(), [](int code) { return code != 0; });
        if (failed != codes.end()) return first.raise(*failed, name);
        PyErr_Format(PyExc_RuntimeError, "program '%s' was abandoned", name);
    }
}

// What can't be done here the other processes must not wait for.
PyObject* refuse(const std::string& reason) {
    PyErr_Format(PyExc_RuntimeError, "distributed: %s", reason.c_str());
    PyThreadState* state = PyEval_SaveThread();
    Processes& processes = Processes::all();
    std::unique_lock lock(processes.mutex());
    processes.fail(reason);
    lock.unlock();
    restore_thread(state);
    return nullptr;
}

PyObject* run(DeviceProgram* self, PyObject* sequence) {
    Run run(self);
    const Program& p = run.p;
    PyObject* called = run.executable->name;
    Span span(called, "devices");
    if (!run.find_inputs(sequence) || !run.find_donors() || !run.make_results() || !run.make_arena()) return nullptr;

    const int size = run.facts.size;
    const Turn turn(run.facts.communication);
    if (!turn.reason().empty()) return refuse(turn.reason());
    Team team(size, run.facts.communication);
    Frame first(&p.host_calls, true);  // of device 0, which the calling thread runs
    first.team = &team;
    first.name = called;
    std::deque<Frame> others;
    for (int d = 1; d < size; ++d) others.emplace_back(&p.host_calls, &team, d);
    std::vector<int> codes(run.size, 0);
    auto work = [&](int device) -> bool {
        void* outer = current_frame;
        if (device) current_frame = &others[size_t(device) - 1];
        const int code = codes[size_t(device)] = run.on_device(size_t(device));
        current_frame = outer;
        return code == 0;
    };
    LibraryCall call(p.libraries);
    PyThreadState* state = PyEval_SaveThread();
    bool started = team.run(work, [] { return pb_interrupt_pending() != 0; });
    restore_thread(state);
    const char* name = PyUnicode_AsUTF8(called);
    delete_donated(p, run.arrays.data());
    if (!started) return PyErr_Format(PyExc_RuntimeError, "program '%s': no threads for %d devices", name, size);
    if (!team.is_abandoned() && !first.exception) return run.results.release();
    raise_failure(team, first, others, codes, name);
    return nullptr;
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
