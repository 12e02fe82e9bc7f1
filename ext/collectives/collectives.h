// Collective operations of devices that run one program, in two levels: devices of a process share memory, where one of
// them does what is to be done between processes (processes.h).
//
//     pb_collective(site, in, out)      every device calls it, in the same order; `site` is the number of the operation
//
// or, for large ones with other work between the two calls,
//     pb_collective_begin(site, in, out)
//     pb_collective_end(site, in, out)  waits; until then `in` is not written, and `out` not touched
//
// The device that comes last to the first of the two begins it; at the second they meet. Meanwhile a thread moves the
// messages on (under_way.h).
//
// A program brings a list of what its sites are (`Collective`), so the machine code names neither devices nor processes.
// Operands and results are arrays of `count` elements, or, where an operation deals with a part for each member of a
// group, of `members` x `count`. The devices are numbered as they lie in the mesh; groups say which of them work
// together, in which order. With k members a group, for the member at place m:
//
//     all_reduce      in[count] -> out[count]         out = in of member 0 + ... + in of member k-1
//     all_gather      in[count] -> out[k][count]      out[j] = in of member j
//     reduce_scatter  in[k][count] -> out[count]      out = in[m] of member 0 + ...
//     all_to_all      in[k][count] -> out[k][count]   out[j] = in[m] of member j
//     broadcast       in[count] -> out[count]         out = in of member `root`
//     permute         in[count] -> out[count]         out = in of the device that sends to this one, else zero
//
// Sums are in this order: over the members of one process, then over the processes in the order of their first member, as
// they meet. So results are the same, bit by bit, whenever devices and processes are the same.
//
// Between processes: operands of which all processes together have at most kWhole bytes are sent to all, who add them up;
// of larger ones each process adds up a part and sends that. Both are as few bytes as there can be, with one and two waits.
// Many processes (kMany) do so in rounds of at most kMeet who meet: the digits of their places in a mixed base say who, so
// that 1,024 send 22 messages each instead of 1,023, in 4 rounds. Of a number without such a base the last few leave
// their part to another one, who gives them the result.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/processes.h"
#include "collectives/reduce.h"

namespace pb {

enum class Kind : int { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, permute, count };

constexpr size_t kMany = 16;  // processes, from which on they meet in rounds

// In which rounds the processes of a group meet: numbers whose product is `inner`. Those behind it stand outside.
struct Rounds {
    std::vector<size_t> sizes;
    size_t inner = 0;
    size_t partners() const {
        size_t n = 0;
        for (size_t size : sizes) n += size - 1;
        return n;
    }
};

// The processes of a group, by their first members; `here`: its members in this process.
struct Members {
    std::vector<int> processes, here;
    int place = -1;  // of this process
    Rounds rounds;
};

struct Collective {
    Kind kind = Kind::all_reduce;
    Combiner combine = nullptr;  // of reductions
    size_t element = 1;          // bytes
    size_t count = 0;
    std::vector<std::vector<int>> groups;
    std::vector<Members> members;            // of each group
    std::vector<std::pair<int, int>> pairs;  // of a permute: (source, destination)
    int root = 0;
    std::string text;  // what messages call it
    size_t groups_of_steps() const { return kind == Kind::permute ? 1 : groups.size(); }
};

// Which process has each device of the mesh, and which devices this one has.
struct Layout {
    std::vector<int> process;  // of each device
    std::vector<int> local;    // numbers of this process's devices, in the order of its threads
    int place_of(int device) const {  // among the local ones; -1: elsewhere
        for (size_t k = 0; k < local.size(); ++k)
            if (local[k] == device) return int(k);
        return -1;
    }
};

struct Communication {
    Layout layout;
    std::vector<Collective> sites;
    uint64_t fingerprint = 0;
};

// That a thread runs a program. Which of two threads' comes first is left to chance, on each process anew, so that processes
// could take one's numbers for the other's: two with operations between the same processes are refused at one time.
class Turn {
  public:
    // Null: the program has no such operations.
    explicit Turn(const Communication* program);
    ~Turn();
    Turn(const Turn&) = delete;
    const std::string& reason() const { return reason_; }  // why it can't be; empty if it can

  private:
    const Communication* program_;  // null where there is nothing to be said
    std::string reason_;
};

// Does one operation for all devices of the process: in[k], out[k] are those of layout.local[k]. False if it failed; then
// Processes::all().reason() is why.
bool perform(const Communication& all, int64_t site, const std::vector<const void*>& in, const std::vector<void*>& out,
             const std::function<bool()>& interrupted);

// communication(devices' processes, local devices, sites, fingerprint) -> capsule, for DeviceProgram. A site is (kind,
// combine, element, count, groups, pairs, root, text).
PyObject* make_communication(PyObject*, PyObject* args);
extern const char kCommunication[];

}  // namespace pb

extern "C" void pb_collective(int64_t site, const void* in, void* out);
extern "C" void pb_collective_begin(int64_t site, const void* in, void* out);
extern "C" void pb_collective_end(int64_t site, const void* in, void* out);
