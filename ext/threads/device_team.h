// Devices of one machine that run one program at once, each on a thread of its own, and what they exchange.
//
// An exchange is a sequence of calls that every device makes in the same order:
//     pb_show(slot, data)            for each operand: where this device has it; or, if it is small,
//     pb_show_copy(slot, data, bytes)  what this device has
//     pb_meet(site)                  waits for the others; `site` is the number of the exchange in the program
//     pb_take(slot, out, bytes)      copies all devices' operands, of `bytes` bytes each, to `out`, in the order of devices
//     pb_part(site)                  after pb_show: waits again, so that nobody overwrites what another one still reads
//     pb_withdraw(slot, data)        ends the operand's life
// Copies are kept until the exchange after the next, which nobody begins before all are through with this one.
// Everybody reads the same operands in the same order, so results do not depend on the timing. Waiting means some
// spinning, as long as that has been worth it lately, then sleep.
//
// A device that fails abandons the team: from then on exchanges return at once (with undefined contents) and
// pb_interrupt_pending tells the others to stop. The team is abandoned, too, when an exchange can never be complete: a
// device has ended while others wait, or devices have met at different exchanges.
//
// Operands of up to 32 KB are copied, and an exchange waits once for them; larger ones are read where they are, and the
// devices wait again before they go on. Measured: on a machine under load an exchange takes 36 us, with 50 us of
// spinning 280.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace pb {

struct Communication;
class UnderWay;

class Team {
  public:
    // `communication`: what the program's collective operations are (collectives/collectives.h); null: it has none.
    explicit Team(int size, const Communication* communication = nullptr);
    ~Team();
    Team(const Team&) = delete;

    int size() const { return size_; }
    bool is_abandoned() const { return abandoned_.load(std::memory_order_relaxed); }
    // Why, if it was not a device's own failure.
    const std::string& reason() const { return reason_; }

    // Runs work(device) for every device and returns when all are done; device 0 on the calling thread. `work` returns
    // whether it went well and must not throw. `interrupted` is asked now and then while the calling thread waits; if it
    // says so, the team is abandoned. Needs no GIL. False if the system gives no threads.
    bool run(const std::function<bool(int)>& work, const std::function<bool()>& interrupted);

    // What the calls above do for one device.
    void show(int device, int64_t slot, const void* data);
    void show_copy(int device, int64_t slot, const void* data, size_t bytes);
    void meet_to_read(int device, int64_t site);
    bool meet(int device, int64_t site);
    void take(int device, int64_t slot, void* out, size_t bytes) const;
    // An operation in which all devices take part, those of other processes too.
    void collective(int device, int64_t site, const void* in, void* out);
    // The two halves of it.
    void begin_collective(int device, int64_t site, const void* in, void* out);
    void end_collective(int device, int64_t site);
    // The number of a device among those of all processes.
    int number(int device) const;
    bool is_of_several_processes() const { return communication_; }

    void abandon(const std::string& reason);

  private:
    void finish(bool well);
    bool wait(int device, uint32_t generation);

    struct Shown {
        std::vector<const void*> data;          // by slot
        std::vector<std::vector<char>> copies;  // by slot
    };
    struct alignas(64) Device {  // written by the device itself, before it meets the others
        Shown shown[2];          // of this exchange and the one before, by turns
        uint32_t turn = 0;       // exchanges that it has begun to read
        int64_t site = 0;
    };
    Shown& current(int device);

    const int size_;
    const bool spins_;  // there is a core for every device
    std::vector<Device> devices_;
    std::atomic<int> arrived_{0}, finished_{0}, sleeping_{0};
    std::atomic<uint32_t> generation_{0};
    std::atomic<bool> abandoned_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string reason_;  // guarded by mutex_ until all are done
    const std::function<bool()>* interrupted_ = nullptr;
    const Communication* communication_;
    std::vector<const void*> in_;  // of a collective operation, by device
    std::vector<void*> out_;
    std::unique_ptr<UnderWay> under_way_;
};

}  // namespace pb

extern "C" {
void pb_show(int64_t slot, const void* data);
void pb_show_copy(int64_t slot, const void* data, int64_t bytes);
void pb_meet(int64_t site);
void pb_take(int64_t slot, void* out, int64_t bytes);
void pb_part(int64_t site);
void pb_withdraw(int64_t slot, const void* data);
// The number of the device that the calling thread runs.
void pb_device_index(int32_t* out);
}
