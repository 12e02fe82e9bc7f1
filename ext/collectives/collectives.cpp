#include "collectives/collectives.h"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <exception>
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
    Message send(int process, const void* data, size_t size, int step) const {
        return {true, process, tag(step), const_cast<void*>(data), size};
    }
    Message receive(int process, void* data, size_t size, int step) const { return {false, process, tag(step), data, size}; }
};

// The steps of an operation. It runs to where it has to wait for messages (`co_await wait_for(messages)`), and on from there
// when they are done: so one text serves operations that are waited for at once and those that work goes on beside. One that
// is given up is destroyed where it waits.
class Steps {
  public:
    struct promise_type {
        Processes::Pending* pending = nullptr;
        Steps get_return_object() { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        [[noreturn]] void unhandled_exception() { std::terminate(); }
    };
    explicit Steps(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~Steps() {
        if (handle_) handle_.destroy();
    }
    bool is_done() const { return handle_.done(); }
    // Waits, and goes on, until all is done. False if it cannot be: reason() says why.
    bool finish(const std::function<bool()>& interrupted, const std::string& what) {
        while (!handle_.done()) {
            if (!Processes::all().finish(std::exchange(handle_.promise().pending, nullptr), interrupted, what)) return false;
            handle_.resume();
        }
        return true;
    }
    // Goes on as far as it can without waiting.
    void advance() {
        while (!handle_.done() && Processes::all().is_done(handle_.promise().pending)) {
            Processes::all().recycle(std::exchange(handle_.promise().pending, nullptr));
            handle_.resume();
        }
    }

  private:
    std::coroutine_handle<promise_type> handle_;
};

struct wait_for {
    std::vector<Message> messages;
    explicit wait_for(std::vector<Message> given) : messages(std::move(given)) {}
    bool await_ready() const { return messages.empty(); }
    void await_suspend(std::coroutine_handle<Steps::promise_type> handle) {
        handle.promise().pending = Processes::all().begin(messages);
    }
    void await_resume() const {}
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

Steps all_reduce(const Work& w, const Members& m) {
    if (m.here.empty()) co_return;
    const size_t n = m.processes.size(), count = w.op.count, bytes = w.bytes();
    Scratch scratch;
    char* out = w.result(m.here[0]);
    const char* mine = w.operand(m.here[0]);  // the sum of what is here
    if (m.here.size() > 1) {
        std::vector<const char*> operands;
        for (int device : m.here) operands.push_back(w.operand(device));
        char* sum = n == 1 ? out : scratch.get(bytes);
        add_up(w, operands, sum, count);
        mine = sum;
    }
    std::vector<Message> messages;
    std::vector<const char*> parts(n);
    if (n == 1) {
        copy(out, mine, bytes);
    } else if (bytes * n <= kWhole || count < n) {
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
        co_await wait_for(std::move(messages));
        add_up(w, parts, out, count);
    } else {
        auto first = [&](size_t k) { return count * k / n; };  // element of the part of process k
        auto length = [&](size_t k) { return (first(k + 1) - first(k)) * w.op.element; };
        const size_t here = size_t(m.place), at = first(here) * w.op.element;
        for (size_t k = 0; k < n; ++k) {
            if (k == here) {
                parts[k] = mine + at;
                continue;
            }
            char* from = scratch.get(length(here));
            parts[k] = from;
            messages.push_back(w.receive(m.processes[k], from, length(here), 0));
            messages.push_back(w.send(m.processes[k], mine + first(k) * w.op.element, length(k), 0));
        }
        co_await wait_for(std::move(messages));
        add_up(w, parts, out + at, first(here + 1) - first(here));
        messages = {};
        for (size_t k = 0; k < n; ++k) {
            if (k == here) continue;
            messages.push_back(w.receive(m.processes[k], out + first(k) * w.op.element, length(k), 1));
            messages.push_back(w.send(m.processes[k], out + at, length(here), 1));
        }
        co_await wait_for(std::move(messages));
    }
    for (int device : m.here) copy(w.result(device), out, bytes);
}

Steps all_gather(const Work& w, const std::vector<int>& group, const Members& m) {
    if (m.here.empty()) co_return;
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
    co_await wait_for(std::move(messages));
    for (int device : m.here) copy(w.result(device), out, group.size() * w.bytes());
}

Steps reduce_scatter(const Work& w, const std::vector<int>& group, const Members& m) {
    if (m.here.empty()) co_return;
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
    co_await wait_for(std::move(messages));
    for (auto& [device, terms] : mine) add_up(w, terms, w.result(device), w.op.count);
}

Steps all_to_all(const Work& w, const std::vector<int>& group) {
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
    co_await wait_for(std::move(messages));
}

// Along a binary tree of the processes, whose root is that of the source.
Steps broadcast(const Work& w, const std::vector<int>& group, const Members& m) {
    if (m.here.empty()) co_return;
    const int source = group[size_t(w.op.root)];
    const int n = int(m.processes.size());
    int first = 0;
    while (m.processes[size_t(first)] != w.owner(source)) ++first;
    const int place = (m.place - first + n) % n;  // counted from the root
    auto process = [&](int k) { return m.processes[size_t((k + first) % n)]; };
    char* out = w.result(m.here[0]);
    std::vector<Message> messages;
    int bit = 1;
    if (w.is_here(source)) {
        copy(out, w.operand(source), w.bytes());
        while (bit < n) bit *= 2;
    } else {
        while (!(place & bit)) bit *= 2;
        messages.push_back(w.receive(process(place - bit), out, w.bytes(), 0));
        co_await wait_for(std::move(messages));
        messages = {};
    }
    for (bit /= 2; bit; bit /= 2)
        if (place + bit < n) messages.push_back(w.send(process(place + bit), out, w.bytes(), 0));
    co_await wait_for(std::move(messages));
    for (int device : m.here) copy(w.result(device), out, w.bytes());
}

Steps permute(const Work& w) {
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
    co_await wait_for(std::move(messages));
}

// The steps for the devices of one group; a permutation has no groups.
Steps steps_of(const Work& w, size_t g) {
    const Collective& op = w.op;
    switch (op.kind) {
        case Kind::all_reduce: return all_reduce(w, op.members[g]);
        case Kind::all_gather: return all_gather(w, op.groups[g], op.members[g]);
        case Kind::reduce_scatter: return reduce_scatter(w, op.groups[g], op.members[g]);
        case Kind::all_to_all: return all_to_all(w, op.groups[g]);
        case Kind::broadcast: return broadcast(w, op.groups[g], op.members[g]);
        default: return permute(w);
    }
}

}  // namespace

bool perform(const Communication& all, int64_t site, const std::vector<const void*>& in, const std::vector<void*>& out,
             const std::function<bool()>& interrupted) {
    if (Processes::all().has_failed()) return false;
    const Collective& op = all.sites[size_t(site)];
    Work w{all, op, site, in, out};
    size_t groups = op.kind == Kind::permute ? 1 : op.groups.size();
    for (size_t g = 0; g < groups; ++g)
        if (!steps_of(w, g).finish(interrupted, op.text)) return false;
    return true;
}

// One that goes on beside work of the program. Its coroutine refers to what stands above it here.
struct Begun {
    int64_t site;
    std::vector<const void*> in;
    std::vector<void*> out;
    Work work;
    Steps steps;

    Begun(const Communication& all, int64_t site, const void* in, void* out)
        : site(site), in{in}, out{out}, work{all, all.sites[size_t(site)], site, this->in, this->out},
          steps(steps_of(work, group_here(work.op))) {}

  private:
    static size_t group_here(const Collective& op) {  // of the one device of this process
        size_t group = 0;
        while (op.kind != Kind::permute && op.members[group].here.empty()) ++group;
        return group;
    }
};

UnderWay::~UnderWay() {
    if (operations_.empty()) return;  // else MPI may still write to the memory, and the others wait
    Processes::all().fail("process " + std::to_string(Processes::all().rank) + " left a program before its " +
                          operations_[0]->work.op.text + " was done");
}

bool UnderWay::begin(const Communication& all, int64_t site, const void* in, void* out) {
    if (Processes::all().has_failed()) return false;
    operations_.push_back(new Begun(all, site, in, out));
    for (Begun* operation : operations_) operation->steps.advance();
    return !Processes::all().has_failed();
}

bool UnderWay::end(int64_t site, const std::function<bool()>& interrupted) {
    for (size_t k = 0; k < operations_.size(); ++k) {
        if (operations_[k]->site != site) continue;
        for (Begun* operation : operations_) operation->steps.advance();
        std::unique_ptr<Begun> operation(operations_[k]);
        if (!operation->steps.finish(interrupted, operation->work.op.text)) {
            operation.release();
            return false;
        }
        operations_.erase(operations_.begin() + ptrdiff_t(k));
        return true;
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

extern "C" void pb_collective_begin(int64_t site, const void* in, void* out) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->begin_collective(frame->device, site, in, out);
}

extern "C" void pb_collective_end(int64_t site, const void*, void*) {
    auto* frame = static_cast<pb::Frame*>(pb::current_frame);
    frame->team->end_collective(frame->device, site);
}
