// Correlated OTs into memory of a CUDA card: both parties in one process, each with its own memory
// of card 0, which the caller's own kernels or copies then read.
//
//     VOLERY_FEATURES=gpu crates/ffi/install /tmp/volery
//     export PKG_CONFIG_PATH=/tmp/volery/lib/pkgconfig LD_LIBRARY_PATH=/tmp/volery/lib
//     flags="$(pkg-config --cflags --libs volery) -I/usr/local/cuda/include"
//     flags="$flags -L/usr/local/cuda/lib64 -lcudart -pthread"
//     c++ -std=c++17 -O2 -o card crates/ffi/examples/card/card.cpp $flags
//     ./card 20000000
//
// The library itself needs no toolkit, only NVIDIA's driver; this program uses the runtime for
// cudaMalloc.

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <volery.h>

namespace {

void check(volery_status status) {
    if (status != VOLERY_OK)
        throw std::runtime_error("status " + std::to_string(status) + ": " + volery_last_error());
}

void check(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Memory of the card; wiped, because it holds secrets.
template <typename T> class OnCard {
public:
    explicit OnCard(std::size_t n) : n_(n) { check(cudaMalloc(&at_, n * sizeof(T))); }
    ~OnCard() {
        cudaMemset(at_, 0, n_ * sizeof(T));
        cudaFree(at_);
    }
    OnCard(const OnCard &) = delete;
    OnCard &operator=(const OnCard &) = delete;

    // An address of the card, for kernels.
    T *at() { return at_; }
    std::vector<T> copy() const {
        std::vector<T> all(n_);
        check(cudaMemcpy(all.data(), at_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
        return all;
    }

private:
    T *at_ = nullptr;
    std::size_t n_;
};

int send_all(void *context, const std::uint8_t *data, std::size_t length) {
    while (length > 0) {
        const ssize_t done = send(*static_cast<int *>(context), data, length, MSG_NOSIGNAL);
        if (done <= 0) return 1;
        data += done;
        length -= static_cast<std::size_t>(done);
    }
    return 0;
}

int receive_all(void *context, std::uint8_t *data, std::size_t length) {
    while (length > 0) {
        const ssize_t done = recv(*static_cast<int *>(context), data, length, 0);
        if (done <= 0) return 1;
        data += done;
        length -= static_cast<std::size_t>(done);
    }
    return 0;
}

volery_options options(std::size_t n) {
    volery_options options = VOLERY_OPTIONS_INIT;
    options.total = n;
    options.for_cards = 1; // at both parties, also where one has no card
    return options;
}

void make_sender(int socket, std::size_t n, OnCard<volery_block> &v, volery_block &delta) {
    const volery_transport transport = {&socket, send_all, receive_all};
    const volery_options given = options(n);
    volery_cot_sender_on_device *sender = nullptr;
    check(volery_cot_sender_on_device_new(&transport, &given, nullptr, 0, &sender));
    check(volery_cot_sender_on_device_delta(sender, &delta));
    check(volery_cot_sender_on_device_extend(sender, v.at(), n));
    volery_cot_sender_on_device_free(sender);
}

void make_receiver(int socket, std::size_t n, OnCard<std::uint32_t> &u, OnCard<volery_block> &w) {
    const volery_transport transport = {&socket, send_all, receive_all};
    const volery_options given = options(n);
    volery_cot_receiver_on_device *receiver = nullptr;
    check(volery_cot_receiver_on_device_new(&transport, &given, 0, &receiver));
    check(volery_cot_receiver_on_device_extend(receiver, u.at(), w.at(), n));
    volery_cot_receiver_on_device_free(receiver);
}

void run(std::size_t n) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) throw std::runtime_error("no sockets");
    OnCard<volery_block> v(n), w(n);
    OnCard<std::uint32_t> u((n + 31) / 32);
    volery_block delta;
    auto other = std::async(std::launch::async, [&] {
        // Without this end the other one would wait.
        try {
            make_receiver(sockets[1], n, u, w);
        } catch (...) {
            shutdown(sockets[1], SHUT_RDWR);
            throw;
        }
    });
    try {
        make_sender(sockets[0], n, v, delta);
    } catch (...) {
        shutdown(sockets[0], SHUT_RDWR);
        throw;
    }
    other.get();
    close(sockets[0]);
    close(sockets[1]);

    // Here a kernel would take v.at(), u.at() and w.at(). The copies show the relation.
    const auto v_copy = v.copy(), w_copy = w.copy();
    const auto u_copy = u.copy();
    for (std::size_t i = 0; i < n; i++) {
        const bool bit = u_copy[i / 32] >> (i % 32) & 1;
        for (int byte = 0; byte < 16; byte++)
            if (w_copy[i].bytes[byte] != (v_copy[i].bytes[byte] ^ (bit ? delta.bytes[byte] : 0)))
                throw std::runtime_error("correlation " + std::to_string(i) + " does not hold");
    }
    std::cout << n << " correlated OTs on the card: w = v + u*delta holds\n";
}

} // namespace

int main(int count, char **words) {
    try {
        run(count > 1 ? std::strtoull(words[1], nullptr, 10) : 20'000'000);
    } catch (const std::exception &error) {
        std::cerr << "error: " << error.what() << '\n';
        return 1;
    }
}
