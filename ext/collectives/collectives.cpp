#include "collectives/collectives.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "programs/host_call.h"
#include "ref.h"
#include "threads/device_team.h"
#include "threads/thread_pool.h"

namespace pb {
namespace {

constexpr size_t kWhole = 1 << 15;  // bytes, see the head

// What one operation needs of everything.
struct Work {
    const Communication& all;
    const Collective& op;
    int64_t site;
    const std::vector<const void*>& in;
    const std::vector<void*>& out;
    const std::function<bool()>& interrupted;

    int me() const { return Processes::all().rank; }
    size_t bytes() const { return op.count * op.element; }
    int owner(int device) const { return all.layout.process[size_t(device)]; }
    bool is_here(int device) const { return owner(device) == me(); }
    const char* operand(int device, size_t offset = 0) const {
        return static_cast<const char*>(in[size_t(all.layout.place_of(device))]) + offset;
    }
    char* result(int device, size_t offset = 0) const {
        return static_cast<char*>(out[size_t(all.layout.place_of(device))]) + offset;
    }
    uint32_t tag(int step) const { return tag_of(all.fingerprint, site, step, Processes::all().tag_limit); }
    bool exchange(const std::vector<Message>& messages) const {
        return Processes::all().exchange(messages, interrupted, op.text);
    }
    Message send(int process, const void* data, size_t size, int step) const {
        return {true, process, tag(step), const_cast<void*>(data), size};
    }
    Message receive(int process, void* data, size_t size, int step) const { return {false, process, tag(step), data, size}; }
};

void copy(void* to, const void* from, size_t bytes) {
    if (to != from && bytes) memcpy(to, from, bytes);
}

// Memory of one operation, kept for the next ones: new pages cost as much as moving the bytes (of 4 MB a quarter of the
// time of an all-reduce). Where the processes fail MPI may still write to it, so it is not used again then.
struct Block {
    char* data;
    size_t bytes;
};
constexpr size_t kKept = size_t(1) << 28;  // bytes, at most

struct Scratch {
    std::vector<Block> blocks;
    char* get(size_t bytes) {
        bytes = std::max<size_t>(bytes, 1);
        auto best = idle().end();
        for (auto it = idle().begin(); it != idle().end(); ++it)
            if (it->bytes >= bytes && it->bytes <= 4 * bytes + 4096 && (best == idle().end() || it->bytes < best->bytes)) best = it;
        if (best != idle().end()) {
            blocks.push_back(*best);
            idle_bytes() -= best->bytes;
            idle().erase(best);
        } else {
            blocks.push_back({static_cast<char*>(::operator new(bytes, std::align_val_t(64))), bytes});
        }
        return blocks.back().data;
    }
    ~Scratch() {
        if (Processes::all().has_failed()) return;
        for (Block& block : blocks) {
            if (idle_bytes() + block.bytes > kKept) {
                ::operator delete(block.data, std::align_val_t(64));
                continue;
            }
            idle_bytes() += block.bytes;
            idle().push_back(block);
        }
    }

  private:  // of this thread: teams of a process that talks to no other may run beside each other
    static std::vector<Block>& idle() {
        static thread_local std::vector<Block> blocks;
        return blocks;
    }
    static size_t& idle_bytes() {
        static thread_local size_t bytes = 0;
        return bytes;
    }
};

Members members_of(const std::vector<int>& group, const Layout& layout, int me) {
    Members m;
    for (int device : group) {
        int p = layout.process[size_t(device)];
        if (std::find(m.processes.begin(), m.processes.end(), p) == m.processes.end()) m.processes.push_back(p);
        if (p == me) m.here.push_back(device);
    }
    for (size_t k = 0; k < m.processes.size(); ++k)
        if (m.processes[k] == me) m.place = int(k);
    return m;
}

// The sum of all parts[k] (count elements each), in order, to `out`, which may be the first of them.
void add_up(const Work& w, const std::vector<const char*>& parts, char* out, size_t count) {
    if (parts.size() == 1) return copy(out, parts[0], count * w.op.element);
    // By blocks, so that a partial sum is still in the cache when it is added to.
    const size_t block = std::max<size_t>(1, (1 << 14) / w.op.element);
    for (size_t at = 0; at < count; at += block) {
        size_t n = std::min(block, count - at), offset = at * w.op.element;
        w.op.combine(parts[0] + offset, parts[1] + offset, out + offset, n);
        for (size_t k = 2; k < parts.size(); ++k) w.op.combine(out + offset, parts[k] + offset, out + offset, n);
    }
}

// `mine`, of this process, summed over the processes, to `out`, which is other memory.
bool reduce_between(const Work& w, const Members& m, const char* mine, char* out, Scratch& scratch) {
    const size_t n = m.processes.size(), count = w.op.count, bytes = w.bytes();
    std::vector<Message> messages;
    std::vector<const char*> parts(n);
    if (bytes * n <= kWhole || count < n) {
        for (size_t k = 0; k < n; ++k) {
            if (int(k) == m.place) {
                parts[k] = mine;
                continue;
            }
            char* from = scratch.get(bytes);
            parts[k] = from;
            messages.push_back(w.receive(m.processes[k], from, bytes, 0));
            messages.push_back(w.send(m.processes[k], mine, bytes, 0));
        }
        if (!w.exchange(messages)) return false;
        add_up(w, parts, out, count);
        return true;
    }
    auto first = [&](size_t k) { return count * k / n; };  // element of the part of process k
    const size_t own = first(size_t(m.place)), own_count = first(size_t(m.place) + 1) - own;
    for (size_t k = 0; k < n; ++k) {
        if (int(k) == m.place) {
            parts[k] = mine + own * w.op.element;
            continue;
        }
        char* from = scratch.get(own_count * w.op.element);
        parts[k] = from;
        messages.push_back(w.receive(m.processes[k], from, own_count * w.op.element, 0));
        messages.push_back(w.send(m.processes[k], mine + first(k) * w.op.element, (first(k + 1) - first(k)) * w.op.element, 0));
    }
    if (!w.exchange(messages)) return false;
    add_up(w, parts, out + own * w.op.element, own_count);
    messages.clear();
    for (size_t k = 0; k < n; ++k) {
        if (int(k) == m.place) continue;
        messages.push_back(w.receive(m.processes[k], out + first(k) * w.op.element, (first(k + 1) - first(k)) * w.op.element, 1));
        messages.push_back(w.send(m.processes[k], out + own * w.op.element, own_count * w.op.element, 1));
    }
    return w.exchange(messages);
}

bool all_reduce(const Work& w, const Members& m) {
    if (m.here.empty()) return true;
    Scratch scratch;
    std::vector<const char*> parts;
    for (int device : m.here) parts.push_back(w.operand(device));
    char* out = w.result(m.here[0]);
    if (m.processes.size() == 1) {
        add_up(w, parts, out, w.op.count);
    } else {
        const char* mine = parts[0];
        if (parts.size() > 1) {
            char* partial = scratch.get(w.bytes());
            add_up(w, parts, partial, w.op.count);
            mine = partial;
        }
        if (!reduce_between(w, m, mine, out, scratch)) return false;
    }
    for (int device : m.here) copy(w.result(device), out, w.bytes());
    return true;
}

bool all_gather(const Work& w, const std::vector<int>& group, const Members& m) {
    if (m.here.empty()) return true;
    char* out = w.result(m.here[0]);
    std::vector<Message> messages;
    for (size_t k = 0; k < group.size(); ++k) {
        char* to = out + k * w.bytes();
        if (!w.is_here(group[k])) {
            messages.push_back(w.receive(w.owner(group[k]), to, w.bytes(), 0));
            continue;
        }
        for (int p : m.processes)
            if (p != w.me()) messages.push_back(w.send(p, w.operand(group[k]), w.bytes(), 0));
        copy(to, w.operand(group[k]), w.bytes());
    }
    if (!w.exchange(messages)) return false;
    for (int device : m.here) copy(w.result(device), out, group.size() * w.bytes());
    return true;
}

bool reduce_scatter(const Work& w, const std::vector<int>& group, const Members& m) {
    if (m.here.empty()) return true;
    Scratch scratch;
    std::vector<Message> messages;
    std::vector<std::pair<int, std::vector<const char*>>> mine;  // each device here, what to add up for it
    for (size_t k = 0; k < group.size(); ++k) {
        std::vector<const char*> parts;
        for (int device : m.here) parts.push_back(w.operand(device, k * w.bytes()));
        const char* partial = parts[0];
        if (parts.size() > 1) {
            char* sum = scratch.get(w.bytes());
            add_up(w, parts, sum, w.op.count);
            partial = sum;
        }
        if (!w.is_here(group[k])) {
            messages.push_back(w.send(w.owner(group[k]), partial, w.bytes(), 0));
            continue;
        }
        auto& terms = mine.emplace_back(group[k], std::vector<const char*>()).second;
        for (int p : m.processes) {
            if (p == w.me()) {
                terms.push_back(partial);
                continue;
            }
            char* from = scratch.get(w.bytes());
            terms.push_back(from);
            messages.push_back(w.receive(p, from, w.bytes(), 0));
        }
    }
    if (!w.exchange(messages)) return false;
    for (auto& [device, terms] : mine) add_up(w, terms, w.result(device), w.op.count);
    return true;
}

bool all_to_all(const Work& w, const std::vector<int>& group) {
    std::vector<Message> messages;
    for (size_t from = 0; from < group.size(); ++from)
        for (size_t to = 0; to < group.size(); ++to) {
            bool sends = w.is_here(group[from]), receives = w.is_here(group[to]);
            if (sends && receives)
                copy(w.result(group[to], from * w.bytes()), w.operand(group[from], to * w.bytes()), w.bytes());
            else if (sends)
                messages.push_back(w.send(w.owner(group[to]), w.operand(group[from], to * w.bytes()), w.bytes(), 0));
            else if (receives)
                messages.push_back(w.receive(w.owner(group[from]), w.result(group[to], from * w.bytes()), w.bytes(), 0));
        }
    return w.exchange(messages);
}

// Along a binary tree of the processes, whose root is that of the source.
bool broadcast(const Work& w, const std::vector<int>& group, const Members& m) {
    if (m.here.empty()) return true;
    const int source = group[size_t(w.op.root)];
    const int n = int(m.processes.size());
    int first = 0;
    while (m.processes[size_t(first)] != w.owner(source)) ++first;
    const int place = (m.place - first + n) % n;  // counted from the root
    auto process = [&](int k) { return m.processes[size_t((k + first) % n)]; };
    char* out = w.result(m.here[0]);
    int bit = 1;
    if (w.is_here(source)) {
        copy(out, w.operand(source), w.bytes());
        while (bit < n) bit *= 2;
    } else {
        while (!(place & bit)) bit *= 2;
        if (!w.exchange({w.receive(process(place - bit), out, w.bytes(), 0)})) return false;
    }
    std::vector<Message> messages;
    for (bit /= 2; bit; bit /= 2)
        if (place + bit < n) messages.push_back(w.send(process(place + bit), out, w.bytes(), 0));
    if (!w.exchange(messages)) return false;
    for (int device : m.here) copy(w.result(device), out, w.bytes());
    return true;
}

bool permute(const Work& w) {
    std::vector<Message> messages;
    std::vector<bool> arrives(w.all.layout.local.size());
    for (auto [from, to] : w.op.pairs) {
        bool sends = w.is_here(from), receives = w.is_here(to);
        if (receives) arrives[size_t(w.all.layout.place_of(to))] = true;
        if (sends && receives) copy(w.result(to), w.operand(from), w.bytes());
        else if (sends) messages.push_back(w.send(w.owner(to), w.operand(from), w.bytes(), 0));
        else if (receives) messages.push_back(w.receive(w.owner(from), w.result(to), w.bytes(), 0));
    }
    for (size_t k = 0; k < arrives.size(); ++k)
        if (!arrives[k] && w.bytes()) memset(w.out[k], 0, w.bytes());
    return w.exchange(messages);
}

}  // namespace

bool perform(const Communication& all, int64_t site, const std::vector<const void*>& in, const std::vector<void*>& out,
             const std::function<bool()>& interrupted) {
    const Collective& op = all.sites[size_t(site)];
    Work w{all, op, site, in, out, interrupted};
    if (op.kind == Kind::permute) return permute(w);
    for (size_t g = 0; g < op.groups.size(); ++g) {
        const std::vector<int>& group = op.groups[g];
        const Members& m = op.members[g];
        bool ok = false;
        switch (op.kind) {
            case Kind::all_reduce: ok = all_reduce(w, m); break;
            case Kind::all_gather: ok = all_gather(w, group, m); break;
            case Kind::reduce_scatter: ok = reduce_scatter(w, group, m); break;
            case Kind::all_to_all: ok = all_to_all(w, group); break;
            case Kind::broadcast: ok = broadcast(w, group, m); break;
            default: break;
        }
        if (!ok) return false;
    }
    return true;
}

// ---- from Python --------------------------------------------------------------------------------------------------------

const char kCommunication[] = "pullback.communication";

namespace {

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

}  // namespace

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
    return PyCapsule_New(all.release(), kCommunication, [](PyObject* capsule) {
        delete static_cast<Communication*>(PyCapsule_GetPointer(capsule, kCommunication));
    });
}

}  // namespace pb

extern "C" void pb_collective(int64_t site, const void* in, void* out) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->collective(frame->device, site, in, out);
}
