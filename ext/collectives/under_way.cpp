#include "collectives/under_way.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "threads/float_mode.h"
#include "threads/start.h"

namespace pb {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kFirst = std::chrono::microseconds(250);  // until the first look
constexpr auto kLast = std::chrono::milliseconds(5);     // between two looks, at most
constexpr auto kMoved = std::chrono::microseconds(5);    // a look that takes longer has found something to do

// The thread that moves messages on. What it has is guarded by the processes' mutex.
//
// A look costs up to 50 us of a core in a virtual machine, so they are a fourth of the time apart that nothing has moved.
// To wake the thread costs as much, so while operations come often it is not put to sleep between them.
class Mover {
  public:
    void add(UnderWay* operations) {
        if (!Processes::all().any_thread) return;
        active_.push_back(operations);
        if (!started_) start();
        if (apart_ > 2 * kFirst) wake_.notify_one();
        apart_ = kFirst;
    }
    void remove(UnderWay* operations) { std::erase(active_, operations); }

  private:
    void start() {
        started_ = true;
        start_thread("pullback-comm", [this] { loop(); });  // without it messages move when the program calls
    }
    [[noreturn]] void loop() {
        FlushDenormals flush;
        std::unique_lock lock(Processes::all().mutex());
        while (true) {
            const auto start = Clock::now();
            for (UnderWay* operations : active_) operations->advance();
            if (Clock::now() - start > kMoved) {
                apart_ = kFirst;
                lock.unlock();  // for those who wait for it
                std::this_thread::yield();
                lock.lock();
            } else if (active_.empty() && apart_ == kLast) {
                wake_.wait(lock, [this] { return !active_.empty(); });
            } else {
                wake_.wait_for(lock, apart_);
                apart_ = std::min<Clock::duration>(apart_ + apart_ / 4, kLast);
            }
        }
    }

    std::vector<UnderWay*> active_;
    std::condition_variable wake_;
    Clock::duration apart_ = kFirst;
    bool started_ = false;
};

Mover& mover() {
    static auto* one = new Mover;  // its thread may live longer than what is destroyed at exit
    return *one;
}

}  // namespace

UnderWay::~UnderWay() {
    Processes& processes = Processes::all();
    std::lock_guard lock(processes.mutex());
    if (operations_.empty()) return;  // else MPI may still write to the memory, and the others wait
    mover().remove(this);
    const Collective& op = all_.sites[size_t(operations_.front().site)];
    processes.fail("process " + std::to_string(processes.rank) + " left a program before its " + op.text + " was done");
}

UnderWay::Operation& UnderWay::at(int64_t site) {
    for (Operation& operation : operations_)
        if (operation.site == site) return operation;
    const size_t devices = all_.layout.local.size();
    Operation& added = operations_.emplace_back();
    added.site = site;
    added.in.resize(devices);
    added.out.resize(devices);
    return added;
}

bool UnderWay::begin(size_t place, int64_t site, const void* in, void* out) {
    Processes& processes = Processes::all();
    std::lock_guard lock(processes.mutex());
    if (processes.has_failed()) return false;
    if (operations_.empty()) mover().add(this);
    Operation& operation = at(site);
    operation.in[place] = in;
    operation.out[place] = out;
    if (++operation.came < operation.in.size()) return true;
    const Collective& op = all_.sites[size_t(site)];
    for (size_t g = 0; g < op.groups_of_steps(); ++g) {
        Work& work = operation.groups.emplace_back(Work{all_, op, site, operation.in, operation.out, g});
        work.meet();
        if (op.kind != Kind::permute) work.met = processes.met();  // others may begin before its last messages
        operation.steps.push_back(steps_of(work));
    }
    advance();
    return !processes.has_failed();
}

void UnderWay::advance() {
    for (Operation& operation : operations_)
        for (Steps& steps : operation.steps) steps.advance();
}

bool UnderWay::end(int64_t site, const std::function<bool()>& interrupted) {
    std::lock_guard lock(Processes::all().mutex());
    advance();
    for (auto it = operations_.begin(); it != operations_.end(); ++it) {
        if (it->site != site) continue;
        for (Steps& steps : it->steps)
            if (!steps.finish(interrupted, all_.sites[size_t(site)].text)) return false;
        operations_.erase(it);
        if (operations_.empty()) mover().remove(this);
        return true;
    }
    return true;
}

}  // namespace pb
