/* Times MPI's own operations: one line "name bytes seconds" each, the least of some rounds.

   Messages go through eight buffers in turn, as values of a program do. Compiled by mpicc, run by mpiexec. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBuffers = 8 };
static int rank, size;

static void run(int kind, char* in, char* out, long bytes) {
    int floats = (int)(bytes / 4);
    switch (kind) {
        case 0: MPI_Allreduce(in, out, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
        case 1: MPI_Allgather(in, (int)(bytes / size), MPI_BYTE, out, (int)(bytes / size), MPI_BYTE, MPI_COMM_WORLD); break;
        case 2: MPI_Reduce_scatter_block(in, out, (floats > size ? floats / size : 1), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
        case 3: MPI_Alltoall(in, (int)(bytes / size), MPI_BYTE, out, (int)(bytes / size), MPI_BYTE, MPI_COMM_WORLD); break;
        default:
            MPI_Sendrecv(in, (int)bytes, MPI_BYTE, (rank + 1) % size, 0, out, (int)bytes, MPI_BYTE, (rank + size - 1) % size,
                         0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char** argv) {
    static const char* names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"};
    int provided, rounds = argc > 1 ? atoi(argv[1]) : 15;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int a = 2; a < argc; ++a) {
        long bytes = atol(argv[a]);
        char* buffer[kBuffers + 1];
        for (int k = 0; k <= kBuffers; ++k) {
            buffer[k] = aligned_alloc(64, (size_t)(bytes + 64) / 64 * 64);
            memset(buffer[k], 0, (size_t)bytes);
        }
        for (int kind = 0; kind < 5; ++kind) {
            double least = 1e9;
            int times = bytes < 100000 ? 50 : 1;
            for (int r = 0; r < rounds + 2; ++r) {
                MPI_Barrier(MPI_COMM_WORLD);
                double start = MPI_Wtime();
                for (int t = 0; t < times; ++t)
                    for (int k = 0; k < kBuffers; ++k) run(kind, buffer[k], buffer[k + 1], bytes);
                double seconds = (MPI_Wtime() - start) / kBuffers / times;
                if (r >= 2 && seconds < least) least = seconds;
            }
            if (!rank) printf("%s %ld %.9g\n", names[kind], bytes, least);
        }
        for (int k = 0; k <= kBuffers; ++k) free(buffer[k]);
    }
    MPI_Finalize();
    return 0;
}
