// The millionaires' problem by a toy GMW protocol on random OTs of volery.
//
//     gmw 0 PORT NUMBER..      listens on 127.0.0.1
//     gmw 1 PORT NUMBER..      connects
//
// Both give up to 64 numbers of 32 bits, as many as each other; both learn, for each, whether the
// number of party 0 is larger, and nothing else. All pairs are compared at once: bit i of a Word
// belongs to pair i.
//
// GMW without checks protects against a peer that follows it (semi-honest), whatever the OTs
// withstand. For the network: a real program would use TLS in place of a plain socket.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <volery.h>

namespace {

using Word = std::uint64_t;
constexpr int bits = 32;
constexpr std::size_t pairs = 64;
constexpr std::size_t ands = bits * pairs; // an AND for each bit of each pair

// ---- the connection ----

class Connection {
public:
    Connection(bool listens, int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        auto *name = reinterpret_cast<sockaddr *>(&address);
        socket_ = socket(AF_INET, SOCK_STREAM, 0);
        const int on = 1;
        if (listens) {
            const int listener = socket_;
            setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (bind(listener, name, sizeof address) != 0 || listen(listener, 1) != 0)
                throw std::runtime_error("cannot listen");
            socket_ = accept(listener, nullptr, nullptr);
            close(listener);
        } else {
            // The other may need a moment to start.
            for (int i = 0; connect(socket_, name, sizeof address) != 0; i++) {
                if (i == 100) throw std::runtime_error("cannot connect");
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                close(socket_);
                socket_ = socket(AF_INET, SOCK_STREAM, 0);
            }
        }
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ~Connection() { close(socket_); }
    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    // The two callbacks: all bytes, or a failure. Without exceptions.
    static int send_all(void *context, const std::uint8_t *data, std::size_t length) {
        auto *self = static_cast<Connection *>(context);
        while (length > 0) {
            const ssize_t done = send(self->socket_, data, length, MSG_NOSIGNAL);
            if (done <= 0) return 1;
            data += done;
            length -= static_cast<std::size_t>(done);
        }
        return 0;
    }
    static int receive_all(void *context, std::uint8_t *data, std::size_t length) {
        auto *self = static_cast<Connection *>(context);
        while (length > 0) {
            const ssize_t done = recv(self->socket_, data, length, 0);
            if (done <= 0) return 1;
            data += done;
            length -= static_cast<std::size_t>(done);
        }
        return 0;
    }
    volery_transport transport() { return {this, send_all, receive_all}; }

    // Sends words and gets as many: the program's own messages, between calls of the library.
    template <std::size_t n> std::array<Word, n> exchange(const std::array<Word, n> &ours) {
        std::array<Word, n> theirs{};
        if (send_all(this, reinterpret_cast<const std::uint8_t *>(ours.data()), 8 * n) ||
            receive_all(this, reinterpret_cast<std::uint8_t *>(theirs.data()), 8 * n))
            throw std::runtime_error("the peer closed the connection");
        return theirs;
    }

private:
    int socket_ = -1;
};

// ---- random OTs ----

void check(volery_status status) {
    if (status != VOLERY_OK)
        throw std::runtime_error("status " + std::to_string(status) + ": " + volery_last_error());
}

// Bit `i` of packed bits, low bit first.
bool bit(const std::vector<std::uint8_t> &packed, std::size_t i) {
    return packed[i / 8] >> (i % 8) & 1;
}

// A hashed message is uniform, so its lowest bit is. (That of a correlated OT is not: it has u.)
bool low(const volery_block &block) { return block.bytes[0] & 1; }

struct Column {
    std::array<Word, bits> words{};
    void set(std::size_t i, bool value) { words[i / pairs] |= Word{value} << (i % pairs); }
};

// This party sends: a = m0 + m1 and c = m0, so that c + (the message that the peer got) = a*u.
void send_ots(Connection &connection, Column &a, Column &c) {
    const volery_transport transport = connection.transport();
    volery_options options = VOLERY_OPTIONS_INIT;
    options.total = ands;
    volery_cot_sender *made = nullptr;
    check(volery_cot_sender_new(&transport, &options, nullptr, &made));
    const std::unique_ptr<volery_cot_sender, decltype(&volery_cot_sender_free)> sender(
        made, volery_cot_sender_free);
    std::vector<volery_block> m(2 * ands);
    check(volery_cot_sender_random(sender.get(), m.data(), ands));
    for (std::size_t i = 0; i < ands; i++) {
        a.set(i, low(m[2 * i]) != low(m[2 * i + 1]));
        c.set(i, low(m[2 * i]));
    }
}

// This party receives: the choice bits are b, the messages its share of (the peer's a)*b.
void receive_ots(Connection &connection, Column &b, Column &c) {
    const volery_transport transport = connection.transport();
    volery_options options = VOLERY_OPTIONS_INIT;
    options.total = ands;
    volery_cot_receiver *made = nullptr;
    check(volery_cot_receiver_new(&transport, &options, &made));
    const std::unique_ptr<volery_cot_receiver, decltype(&volery_cot_receiver_free)> receiver(
        made, volery_cot_receiver_free);
    std::vector<std::uint8_t> u((ands + 7) / 8);
    std::vector<volery_block> m(ands);
    check(volery_cot_receiver_random(receiver.get(), u.data(), m.data(), ands));
    for (std::size_t i = 0; i < ands; i++) {
        b.set(i, bit(u, i));
        c.set(i, low(m[i]));
    }
}

// ---- GMW ----

// Shares of multiplication triples, (a0 + a1)(b0 + b1) = c0 + c1: each party multiplies its own
// shares itself, and the two mixed products come from an OT in each direction.
struct Triples {
    Column a, b, c;
};

Triples make_triples(Connection &connection, int party) {
    Triples triples;
    Column sent, received;
    if (party == 0) {
        send_ots(connection, triples.a, sent);
        receive_ots(connection, triples.b, received);
    } else {
        receive_ots(connection, triples.b, received);
        send_ots(connection, triples.a, sent);
    }
    for (int i = 0; i < bits; i++)
        triples.c.words[i] =
            (triples.a.words[i] & triples.b.words[i]) ^ sent.words[i] ^ received.words[i];
    return triples;
}

// A share of x*y from shares of x and y. Uses up triple `i`.
Word multiply(Connection &connection, int party, Word x, Word y, const Triples &triples, int i) {
    const Word a = triples.a.words[i], b = triples.b.words[i];
    const std::array<Word, 2> ours{x ^ a, y ^ b};
    const auto theirs = connection.exchange(ours);
    const Word d = ours[0] ^ theirs[0], e = ours[1] ^ theirs[1];
    return triples.c.words[i] ^ (d & b) ^ (e & a) ^ (party == 0 ? d & e : 0);
}

// Whether x > y, from the lowest bit up: carry = x_i + (x_i + carry)(y_i + carry), which is
// x_i where the bits differ, and the carry where they do not.
Word compare(Connection &connection, int party, const std::vector<std::uint32_t> &numbers) {
    const Triples triples = make_triples(connection, party);
    Word carry = 0; // a share
    for (int i = 0; i < bits; i++) {
        Word own = 0;
        for (std::size_t pair = 0; pair < numbers.size(); pair++)
            own |= Word{numbers[pair] >> i & 1} << pair;
        // The share of the peer of one's own input is zero.
        const Word x = party == 0 ? own : 0, y = party == 1 ? own : 0;
        carry = x ^ multiply(connection, party, x ^ carry, y ^ carry, triples, i);
    }
    return carry ^ connection.exchange(std::array<Word, 1>{carry})[0];
}

} // namespace

int main(int count, char **arguments) try {
    if (count < 4 || count > 3 + static_cast<int>(pairs)) {
        std::cerr << "usage: gmw 0|1 PORT NUMBER..  (up to 64)\n";
        return 2;
    }
    const int party = std::stoi(arguments[1]);
    std::vector<std::uint32_t> numbers;
    for (int i = 3; i < count; i++)
        numbers.push_back(static_cast<std::uint32_t>(std::stoul(arguments[i])));
    Connection connection(party == 0, std::stoi(arguments[2]));
    const Word larger = compare(connection, party, numbers);
    for (std::size_t i = 0; i < numbers.size(); i++) std::cout << (larger >> i & 1);
    std::cout << '\n';
} catch (const std::exception &error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
}
