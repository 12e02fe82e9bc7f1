#include "collectives/processes.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "gil.h"
#include "programs/host_call.h"
#include "ref.h"
#include "threads/thread_pool.h"

namespace pb {
namespace {

using Clock = std::chrono::steady_clock;
using Handle = intptr_t;  // an int or a pointer

struct Mpi {
    int (*Isend)(const void*, int, Handle, int, int, Handle, void*);
    int (*Irecv)(void*, int, Handle, int, int, Handle, void*);
    int (*Test)(void*, int*, void*);
    int (*Iprobe)(int, int, Handle, int*, void*);
    int (*Recv)(void*, int, Handle, int, int, Handle, void*);
    int (*Cancel)(void*);
    int (*Query_thread)(int*);
    Handle data = 0, notes = 0, byte = 0;  // two communicators, the type of bytes
    int any_source = 0, any_tag = 0;
    size_t request_bytes = 8;
    int status_source = 0;  // where in a status the number of the process lies, in bytes
    int status_tag = 0;
};
Mpi mpi;

constexpr size_t kMost = size_t(1) << 30;  // bytes of one message of MPI's, whose counts are ints
constexpr int kOneAtATime = 2;             // MPI_THREAD_SERIALIZED
constexpr int kNote = 1, kLeft = 2;        // tags of notes
constexpr size_t kNoteBytes = 600;
constexpr double kLate = 5;  // seconds that one which has not come in time has to say so when all end
constexpr uint32_t kApart = 1000;  // operations by which processes may have parted whose names are still found
constexpr double kSettled = 1.0;  // seconds after which a message that nobody waits for means that processes disagree

struct Status {
    alignas(16) char bytes[128];
    int at(int offset) const {
        int value;
        memcpy(&value, bytes + offset, sizeof value);
        return value;
    }
};

struct Request {
    alignas(8) char handle[16] = {};
    int process = 0;
    bool sends = false, done = false;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string seconds_text(double seconds) {
    char text[32];
    snprintf(text, sizeof text, seconds < 10 ? "%.2g" : "%.0f", seconds);
    return text;
}

// Whether a process of this host has ended; false for 0, which is one of another host. Who started it may not have asked
// for its end yet, or never does: then it still has its number, as a zombie.
bool is_gone(int64_t pid) {
    if (!pid) return false;
    if (kill(pid_t(pid), 0)) return errno == ESRCH;
#ifdef __linux__
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(pid));
    std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path, "r"), fclose);
    if (!file) return false;
    text[fread(text, 1, sizeof text - 1, file.get())] = 0;
    const char* name_end = strrchr(text, ')');  // pid (name) state ...; the name may have any characters
    return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
#else
    return false;
#endif
}

}  // namespace

struct Processes::Pending {
    std::vector<Request> requests;
    std::vector<uint32_t> tags;
    size_t left = 0;
    int ahead = -1;  // a process of which a later message was there when last looked at
};

Processes& Processes::all() {
    static auto* processes = new Processes;
    return *processes;
}

uint32_t step_of(uint64_t program, int64_t site, size_t group, int step, uint32_t limit) {
    uint64_t h = program ^ (uint64_t(site) * 0x9e3779b97f4a7c15ull) ^ (uint64_t(step) << 56) ^ (uint64_t(group) << 32);
    h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 29)) * 0x94d049bb133111ebull;
    return uint32_t((h ^ (h >> 32)) % limit);
}

Processes::Pending* Processes::begin(const std::vector<Message>& messages) {
    Pending* pending = std::exchange(spare_, nullptr);
    if (!pending) pending = new Pending;
    pending->requests.clear();
    pending->tags.clear();
    pending->ahead = -1;
    auto post = [&](const Message& m, bool sends) {
        for (size_t at = 0; at == 0 || at < m.bytes; at += kMost) {
            Request& r = pending->requests.emplace_back();
            r.process = m.process;
            r.sends = sends;
            char* data = static_cast<char*>(m.data) + at;
            int bytes = int(std::min(kMost, m.bytes - at));
            int code = sends ? mpi.Isend(data, bytes, mpi.byte, m.process, int(m.tag), mpi.data, r.handle)
                             : mpi.Irecv(data, bytes, mpi.byte, m.process, int(m.tag), mpi.data, r.handle);
            if (code) {
                fail("MPI could not " + std::string(sends ? "send to" : "receive from") + " process " +
                     std::to_string(m.process) + " (error " + std::to_string(code) + ")");
                r.done = true;
                return;
            }
        }
    };
    for (const Message& m : messages)
        if (!m.sends) post(m, false);
    for (const Message& m : messages)
        if (m.sends) post(m, true);
    for (const Message& m : messages) pending->tags.push_back(m.tag);
    pending->left = pending->requests.size();
    return pending;
}

bool Processes::exchange(const std::vector<Message>& messages, const std::function<bool()>& interrupted,
                         const std::string& what) {
    if (has_failed()) return false;
    if (messages.empty()) return true;
    return finish(begin(messages), interrupted, what);
}

bool Processes::is_done(Pending* pending) {
    for (Request& r : pending->requests) {
        if (r.done) continue;
        int done = 0;
        Status status;
        if (mpi.Test(r.handle, &done, status.bytes)) return false;  // `finish` will hear of it, too
        if (!done) continue;
        r.done = true;
        --pending->left;
    }
    return !pending->left;
}

void Processes::recycle(Pending* pending) { delete std::exchange(spare_, pending); }

bool Processes::finish(Pending* given, const std::function<bool()>& interrupted, const std::string& what) {
    std::unique_ptr<Pending> pending(given);
    Clock::time_point start;  // of the first look at the clock, which most messages do without
    if (trace) start = Clock::now();
    double looked = 0;
    int last = -1;
    bool ok = !has_failed();
    for (unsigned round = 0; ok && pending->left; ++round) {
        for (Request& r : pending->requests) {
            if (r.done) continue;
            int done = 0;
            Status status;
            if (int code = mpi.Test(r.handle, &done, status.bytes)) {
                fail(what + ": a message " + (r.sends ? "to" : "from") + " process " + std::to_string(r.process) +
                     " failed in MPI (error " + std::to_string(code) + "); do all processes run the same program?");
                ok = false;
                break;
            }
            if (!done) continue;
            r.done = true;
            --pending->left;
            last = r.process;
        }
        if (!ok || !pending->left || round % 64 != 63) continue;
        if (round == 63 && !trace) start = Clock::now();
        if (round % 1024 == 1023) std::this_thread::yield();
        double waited = seconds_since(start);
        if (waited - looked < 0.002) continue;
        looked = waited;
        if (interrupted && interrupted()) {
            fail("process " + std::to_string(rank) + " was interrupted");
            ok = false;
        } else {
            ok = look_around(*pending, waited, what);
        }
        if (ok && waited > 0.05) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    double waited = trace ? seconds_since(start) : 0;
    if (waited > 1e-4)
        fprintf(stderr, "pullback comm: process %d waited %.3f ms in %s, last for process %d\n", rank, waited * 1e3,
                what.c_str(), last);
    if (ok) {
        delete std::exchange(spare_, pending.release());
        return true;
    }
    for (Request& r : pending->requests)
        if (!r.done && !r.sends) mpi.Cancel(r.handle);
    pending.release();  // MPI may still look at the requests
    return false;
}

// Whether there is still hope; else the reason is set.
bool Processes::look_around(Pending& pending, double waited, const std::string& what) {
    if (hear()) return false;
    if (waited < 0.1) return true;
    std::vector<int> missing;
    for (const Request& r : pending.requests)
        if (!r.done && std::find(missing.begin(), missing.end(), r.process) == missing.end()) missing.push_back(r.process);
    for (int p : missing) {
        if (is_gone(pids_[size_t(p)])) {
            fail(what + ": process " + std::to_string(p) + " is gone (its process id was " +
                 std::to_string(pids_[size_t(p)]) + ")");
            return false;
        }
    }
    double settled = std::min(kSettled, timeout / 2);
    if (waited > settled) {
        for (int p : missing) {
            int there = 0;
            Status status;
            if (mpi.Iprobe(p, mpi.any_tag, mpi.data, &there, status.bytes) || !there) continue;
            uint32_t tag = uint32_t(status.at(mpi.status_tag));
            if (std::find(pending.tags.begin(), pending.tags.end(), tag) != pending.tags.end()) continue;
            // What is waited for may have come with it, since MPI was last asked: then it is not waited for next time.
            if (std::exchange(pending.ahead, p) != p) return true;
            fail(what + ": process " + std::to_string(p) + " has come to another step than process " +
                 std::to_string(rank) + name_of(tag, p) +
                 ". All processes must run the same programs, as often, in the same order, with the same shapes");
            return false;
        }
    }
    if (waited > timeout) {
        std::string names;
        for (int p : missing) given_up_[size_t(p)] = true;
        for (int p : missing) names += (names.empty() ? "" : ", ") + std::to_string(p);
        fail(what + ": process " + std::to_string(rank) + " has waited " + seconds_text(waited) + " s for process" +
             (missing.size() > 1 ? "es " : " ") + names + " (PULLBACK_COMM_TIMEOUT sets the limit)");
        return false;
    }
    return true;
}

void Processes::name(uint32_t step, const std::string& text) {
    std::lock_guard lock(naming_);
    names_.emplace(step, text);
}

// What is known of messages with this tag from a process, behind a colon: a step with a name, at a meeting near this one.
std::string Processes::name_of(uint32_t tag, int process) {
    std::lock_guard lock(naming_);
    const uint32_t here = met_[size_t(process)];
    for (uint32_t apart = 0; apart < kApart; ++apart)
        for (uint32_t there : {here - apart, here + apart}) {
            auto found = names_.find((tag + tag_limit - tag_of(0, there, tag_limit)) % tag_limit);
            if (found == names_.end()) continue;
            std::string text = ": " + found->second;
            if (apart)
                text += ", to which it has come as operation " + std::to_string(there) + " of those between the two; process " +
                        std::to_string(rank) + " has come to operation " + std::to_string(here);
            return text;
        }
    return "";
}

// Whether another process has said that it gave up.
bool Processes::hear() {
    for (int there = 1; there;) {
        Status status;
        if (mpi.Iprobe(mpi.any_source, mpi.any_tag, mpi.notes, &there, status.bytes) || !there) break;
        int from = status.at(mpi.status_source), tag = status.at(mpi.status_tag);
        char text[kNoteBytes] = {};
        if (mpi.Recv(text, int(kNoteBytes), mpi.byte, from, tag, mpi.notes, status.bytes)) break;
        if (tag == kLeft) left_[size_t(from)] = true;
        text[kNoteBytes - 1] = 0;
        if (tag == kNote || !has_failed()) fail(text, false);
    }
    return has_failed();
}

void Processes::fail(const std::string& reason, bool tell) {
    if (has_failed()) return;
    reason_ = reason.empty() ? "unknown" : reason;
    failed_.store(true, std::memory_order_release);
    if (!tell || !connected_) return;
    auto* text = new char[kNoteBytes]();  // read by MPI at its leisure
    strncpy(text, reason_.c_str(), kNoteBytes - 1);
    for (int p = 0; p < size; ++p) {
        if (p == rank) continue;
        auto* request = new Request;
        mpi.Isend(text, int(kNoteBytes), mpi.byte, p, kNote, mpi.notes, request->handle);
    }
}

void Processes::part(double seconds) {
    if (!connected_) return;
    left_[size_t(rank)] = true;
    auto* text = new char[kNoteBytes]();
    strncpy(text, reason_.c_str(), kNoteBytes - 1);
    for (int p = 0; p < size; ++p) {
        if (p == rank) continue;
        auto* request = new Request;
        mpi.Isend(text, int(kNoteBytes), mpi.byte, p, kLeft, mpi.notes, request->handle);
    }
    auto runs = [&](size_t p) { return !left_[p] && !is_gone(pids_[p]); };
    const auto start = Clock::now();
    for (bool all = false; !all && seconds_since(start) < seconds;) {
        hear();
        const bool late = seconds_since(start) > kLate;
        all = true;
        for (size_t p = 0; p < size_t(size); ++p) all = all && (!runs(p) || (given_up_[p] && late));
        if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (size_t p = 0; p < size_t(size); ++p)
        if (pids_[p] && runs(p)) kill(pid_t(pids_[p]), SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // what was sent last is on its way
}

// ---- the functions of the module --------------------------------------------------------------------------------------

PyObject* connect_processes(PyObject*, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"functions", "rank", "size", "data", "notes", "byte", "any_source", "any_tag", "request_bytes",
                                  "source_at", "tag_at", "tag_limit", "pids", "timeout", "trace", nullptr};
    PyObject *functions, *pids;
    unsigned long long data, notes, byte;
    long long request_bytes, tag_limit;
    Mpi& m = mpi;
    Processes& p = Processes::all();
    int trace;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!iiKKKiiLiiLO!dp:connect_processes", const_cast<char**>(names),
                                     &PyDict_Type, &functions, &p.rank, &p.size, &data, &notes, &byte, &m.any_source,
                                     &m.any_tag, &request_bytes, &m.status_source, &m.status_tag, &tag_limit,
                                     &PyTuple_Type, &pids, &p.timeout, &trace))
        return nullptr;
    auto address = [&](const char* name) -> void* {
        PyObject* found = PyDict_GetItemString(functions, name);
        return found ? PyLong_AsVoidPtr(found) : nullptr;
    };
    m.Isend = reinterpret_cast<decltype(m.Isend)>(address("MPI_Isend"));
    m.Irecv = reinterpret_cast<decltype(m.Irecv)>(address("MPI_Irecv"));
    m.Test = reinterpret_cast<decltype(m.Test)>(address("MPI_Test"));
    m.Iprobe = reinterpret_cast<decltype(m.Iprobe)>(address("MPI_Iprobe"));
    m.Recv = reinterpret_cast<decltype(m.Recv)>(address("MPI_Recv"));
    m.Cancel = reinterpret_cast<decltype(m.Cancel)>(address("MPI_Cancel"));
    m.Query_thread = reinterpret_cast<decltype(m.Query_thread)>(address("MPI_Query_thread"));
    if (!m.Isend || !m.Irecv || !m.Test || !m.Iprobe || !m.Recv || !m.Cancel || !m.Query_thread || request_bytes > 16 ||
        PyTuple_GET_SIZE(pids) != p.size || m.status_source > 120 || m.status_tag > 120) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "connect_processes: a function of MPI is missing");
        return nullptr;
    }
    m.data = Handle(data), m.notes = Handle(notes), m.byte = Handle(byte);
    p.trace = trace;
    p.tag_limit = uint32_t(std::min<long long>(tag_limit, 1 << 28));
    p.pids_.assign(size_t(p.size), 0);
    p.left_.assign(size_t(p.size), false);
    p.given_up_.assign(size_t(p.size), false);
    p.met_.assign(size_t(p.size), 0);
    for (int k = 0; k < p.size; ++k) p.pids_[size_t(k)] = PyLong_AsLongLong(PyTuple_GET_ITEM(pids, k));
    p.reason_.clear();
    p.failed_.store(false);
    int level = 0;
    p.any_thread = !m.Query_thread(&level) && level >= kOneAtATime;
    p.connected_ = true;
    Py_RETURN_NONE;
}

namespace {

PyObject* raise_reason(const std::string& reason) {
    return PyErr_Format(PyExc_RuntimeError, "distributed: %s", reason.c_str());
}

bool check_running() {
    Processes& p = Processes::all();
    if (!p.is_connected()) {
        PyErr_SetString(PyExc_RuntimeError, "distributed: this process has not joined others (distributed.initialize)");
        return false;
    }
    if (p.has_failed()) {
        raise_reason(p.reason());
        return false;
    }
    return true;
}

// exchange_bytes(messages, what): messages are (sends, process, step, buffer); bytes to send, bytearrays to fill. This
// process meets each of the others once.
PyObject* exchange_bytes(PyObject*, PyObject* args) {
    PyObject* sequence;
    const char* what;
    if (!PyArg_ParseTuple(args, "O!s:exchange_bytes", &PyTuple_Type, &sequence, &what) || !check_running()) return nullptr;
    std::vector<Message> messages;
    std::vector<Py_buffer> buffers(size_t(PyTuple_GET_SIZE(sequence)));
    size_t held = 0;
    bool ok = true;
    for (; ok && held < buffers.size(); ++held) {
        int sends, process;
        unsigned step;
        PyObject* buffer;
        ok = PyArg_ParseTuple(PyTuple_GET_ITEM(sequence, Py_ssize_t(held)), "piIO", &sends, &process, &step, &buffer) &&
             PyObject_GetBuffer(buffer, &buffers[held], sends ? PyBUF_SIMPLE : PyBUF_WRITABLE) == 0;
        if (!ok) break;
        messages.push_back({bool(sends), process, step, buffers[held].buf, size_t(buffers[held].len)});
    }
    Processes& p = Processes::all();
    if (ok) {
        Frame frame(nullptr, true);
        PyThreadState* state = PyEval_SaveThread();
        std::unique_lock lock(p.mutex());
        std::vector<int> others;
        for (const Message& m : messages)
            if (std::find(others.begin(), others.end(), m.process) == others.end()) others.push_back(m.process);
        for (int process : others) p.meet(process);
        for (Message& m : messages) m.tag = tag_of(m.tag, p.met()[size_t(m.process)], p.tag_limit);
        ok = p.exchange(messages, [] { return pb_interrupt_pending() != 0; }, what);
        lock.unlock();
        restore_thread(state);
        if (!ok && frame.exception) frame.raise(1, what);
        else if (!ok) raise_reason(p.reason());
    }
    if (ok || p.has_failed() == false)
        for (size_t k = 0; k < held; ++k) PyBuffer_Release(&buffers[k]);  // else MPI may still write to them
    if (!ok) return nullptr;
    Py_RETURN_NONE;
}

PyObject* process_failure(PyObject*, PyObject*) {
    Processes& p = Processes::all();
    if (p.is_connected() && p.has_failed()) return PyUnicode_FromString(p.reason().c_str());
    Py_RETURN_NONE;
}

PyObject* fail_processes(PyObject*, PyObject* args) {
    const char* text;
    int tell = 1;
    if (!PyArg_ParseTuple(args, "s|p", &text, &tell)) return nullptr;
    Py_BEGIN_ALLOW_THREADS;
    Processes& p = Processes::all();
    std::unique_lock lock(p.mutex(), std::defer_lock);
    if (tell) lock.lock();  // otherwise no message is sent: in a forked process the mutex may be held by nobody who is left
    p.fail(text, tell != 0);
    if (tell) lock.unlock();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject* name_step(PyObject*, PyObject* args) {
    unsigned step;
    const char* text;
    if (!PyArg_ParseTuple(args, "Is", &step, &text)) return nullptr;
    Processes::all().name(step, text);
    Py_RETURN_NONE;
}

PyObject* part_processes(PyObject*, PyObject* seconds) {
    double limit = PyFloat_AsDouble(seconds);
    if (PyErr_Occurred()) return nullptr;
    Py_BEGIN_ALLOW_THREADS;
    Processes& p = Processes::all();
    std::unique_lock lock(p.mutex());
    p.part(limit);
    lock.unlock();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"connect_processes", reinterpret_cast<PyCFunction>(connect_processes), METH_VARARGS | METH_KEYWORDS,
     "connect_processes(functions, ...)\n--\n\nTakes MPI's functions by address, and what else is needed to call them."},
    {"exchange_bytes", exchange_bytes, METH_VARARGS,
     "exchange_bytes(messages, what)\n--\n\nSends and receives (sends, process, step, buffer); RuntimeError where it "
     "cannot be done."},
    {"process_failure", process_failure, METH_NOARGS,
     "process_failure()\n--\n\nWhy the processes cannot go on together; None if they can."},
    {"fail_processes", fail_processes, METH_VARARGS,
     "fail_processes(reason, tell=True)\n--\n\nGives up, and tells the other processes."},
    {"name_step", name_step, METH_VARARGS,
     "name_step(step, text)\n--\n\nSays what errors call messages of this step."},
    {"part_processes", part_processes, METH_O,
     "part_processes(seconds)\n--\n\nSays that this process ends after a failure, and waits for the others to say so."},
    {nullptr},
};

}  // namespace

bool add_processes(PyObject* module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace pb
