// What Python says of a program's collective operations, and the calls of its machine code.
#include <algorithm>
#include <memory>
#include <mutex>

#include "collectives/collectives.h"
#include "collectives/processes.h"
#include "programs/host_call.h"
#include "ref.h"
#include "threads/device_team.h"
#include "threads/thread_pool.h"

namespace pb {

const char kCommunication[] = "pullback.communication";

namespace {

constexpr size_t kMeet = 8;  // processes that meet in one, at most

// The rounds in which n processes meet.
Rounds rounds_of(size_t n) {
    if (n < kMany) return {{n}, n};
    Rounds rounds;
    for (rounds.inner = n;; --rounds.inner) {
        size_t rest = rounds.inner;
        rounds.sizes.clear();
        for (size_t size = kMeet; size > 1; --size)
            for (; rest % size == 0; rest /= size) rounds.sizes.push_back(size);
        if (rest == 1) return rounds;
    }
}

Members members_of(const std::vector<int>& group, const Layout& layout, int me) {
    Members m;
    for (int device : group) {
        int p = layout.process[size_t(device)];
        if (std::find(m.processes.begin(), m.processes.end(), p) == m.processes.end()) m.processes.push_back(p);
        if (p == me) m.here.push_back(device);
    }
    for (size_t k = 0; k < m.processes.size(); ++k)
        if (m.processes[k] == me) m.place = int(k);
    m.rounds = rounds_of(m.processes.size());
    return m;
}

bool read_numbers(PyObject* object, std::vector<int>& out, int limit) {
    Ref sequence = Ref::steal(PySequence_Tuple(object));
    if (!sequence) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
        long value = PyLong_AsLong(PyTuple_GET_ITEM(sequence.get(), i));
        if (value < 0 || value >= limit) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "communication: number %ld is not below %d", value, limit);
            return false;
        }
        out.push_back(int(value));
    }
    return true;
}

bool read_site(PyObject* object, int devices, Collective& op) {
    int kind, combine, element;
    Py_ssize_t count;
    PyObject *groups, *pairs;
    const char* text;
    if (!PyArg_ParseTuple(object, "iiinO!O!is", &kind, &combine, &element, &count, &PyTuple_Type, &groups, &PyTuple_Type,
                          &pairs, &op.root, &text))
        return false;
    if (kind < 0 || kind >= int(Kind::count) || combine >= int(Combine::count) || count < 0 || element < 0) {
        PyErr_Format(PyExc_ValueError, "communication: no such operation, %R", object);
        return false;
    }
    op.kind = Kind(kind);
    op.count = size_t(count);
    op.text = text;
    if (combine < 0) {
        op.element = size_t(element);  // bytes
    } else {
        op.combine = element < int(Element::count) ? combiner(Combine(combine), Element(element)) : nullptr;
        if (!op.combine) {
            PyErr_Format(PyExc_ValueError, "communication: no such combination, %R", object);
            return false;
        }
        op.element = element_bytes(Element(element));
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(groups); ++i)
        if (!read_numbers(PyTuple_GET_ITEM(groups, i), op.groups.emplace_back(), devices)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
        std::vector<int> pair;
        if (!read_numbers(PyTuple_GET_ITEM(pairs, i), pair, devices)) return false;
        if (pair.size() != 2) return PyErr_SetString(PyExc_ValueError, "communication: a pair has two numbers"), false;
        op.pairs.emplace_back(pair[0], pair[1]);
    }
    return true;
}

// Tells what the first message of each operation belongs to, for errors of processes that part.
void name_steps(const Communication& all) {
    Processes& processes = Processes::all();
    for (size_t site = 0; site < all.sites.size(); ++site)
        for (size_t g = 0; g < all.sites[site].groups_of_steps(); ++g)
            if (all.sites[site].kind == Kind::permute || all.sites[site].members[g].place >= 0)
                for (int step : {0, 1})  // which of them is the first is for the operation to say
                    processes.name(step_of(all.fingerprint, int64_t(site), g, step, processes.tag_limit), all.sites[site].text);
}

// Programs that threads are in at present.
struct Running {
    std::mutex mutex;
    std::vector<const Communication*> programs;
};
Running& running() {
    static auto* all = new Running;
    return *all;
}

bool meet_elsewhere(const Communication& a, const Communication& b) {
    const std::vector<int>& others = b.layout.process;
    return std::any_of(a.layout.process.begin(), a.layout.process.end(), [&](int p) {
        return p != Processes::all().rank && std::find(others.begin(), others.end(), p) != others.end();
    });
}

// Whether a callback of such a program asks, whose place among the operations is known.
bool inside_one() {
    auto* frame = static_cast<Frame*>(current_frame);
    return frame && frame->team && frame->team->is_of_several_processes();
}

}  // namespace

Turn::Turn(const Communication* program) : program_(nullptr) {
    if (!program || program->sites.empty() || inside_one()) return;
    std::lock_guard lock(running().mutex);
    for (const Communication* other : running().programs) {
        if (!meet_elsewhere(*program, *other)) continue;
        reason_ = "two threads of process " + std::to_string(Processes::all().rank) + " are in programs between processes, one at " +
                  other->sites[0].text + ", the other at " + program->sites[0].text +
                  ". Which comes first would be left to chance, and may be another one elsewhere: let one thread call them "
                  "all, or have a call wait until that of the other thread is done";
        return;
    }
    running().programs.push_back(program_ = program);
}

Turn::~Turn() {
    if (!program_) return;
    std::lock_guard lock(running().mutex);
    auto& programs = running().programs;
    programs.erase(std::find(programs.begin(), programs.end(), program_));
}

PyObject* make_communication(PyObject*, PyObject* args) {
    PyObject *processes, *local, *sites;
    unsigned long long fingerprint;
    if (!PyArg_ParseTuple(args, "OOO!K:communication", &processes, &local, &PyTuple_Type, &sites, &fingerprint)) return nullptr;
    auto all = std::make_unique<Communication>();
    all->fingerprint = fingerprint;
    if (!read_numbers(processes, all->layout.process, 1 << 30)) return nullptr;
    int devices = int(all->layout.process.size());
    if (!read_numbers(local, all->layout.local, devices)) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sites); ++i)
        if (!read_site(PyTuple_GET_ITEM(sites, i), devices, all->sites.emplace_back())) return nullptr;
    for (Collective& op : all->sites)
        for (const std::vector<int>& group : op.groups)
            op.members.push_back(members_of(group, all->layout, Processes::all().rank));
    name_steps(*all);
    return PyCapsule_New(all.release(), kCommunication, [](PyObject* capsule) {
        delete static_cast<Communication*>(PyCapsule_GetPointer(capsule, kCommunication));
    });
}

}  // namespace pb

extern "C" void pb_collective(int64_t site, const void* in, void* out) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->collective(frame->device, site, in, out);
}

extern "C" void pb_collective_begin(int64_t site, const void* in, void* out) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->begin_collective(frame->device, site, in, out);
}

extern "C" void pb_collective_end(int64_t site, const void*, void*) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->end_collective(frame->device, site);
}
