// Times every op of one training step of a GPT on this machine, each by itself, and prints where a step's
// time goes and what rate the products reach. Not a test: scripts/bench-cpu.sh runs it.
//
//   bench_ops LAYERS HIDDEN HEADS [THREADS=1] [SEQUENCE=256] [MICRO_BATCH=4] [VOCABULARY=50257]
//
// A product is timed in turn with oneDNN's sgemm of the same matrices, the yardstick. The last lines are the
// GEMM rates: the FLOP of a step's products over the sum of their times.
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/clock.h"
#include "nn/vocab_parallel_head_loss.h"
#include "tensor/arena.h"

namespace hpt {
namespace {

constexpr double kSecondsEach = 0.4;
constexpr int kMinRounds = 5;

struct Sizes {
  std::int64_t layers, hidden, heads, threads, seq, batch, vocab;
  std::int64_t rows() const { return seq * batch; }
};

double median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Medians of the calls' times; they take turns.
std::vector<double> median_seconds(const std::vector<std::function<void()>>& calls) {
  std::vector<std::vector<double>> times(calls.size());
  for (const auto& call : calls) call();
  const double start = seconds_now();
  while (seconds_now() - start < kSecondsEach * static_cast<double>(calls.size()) ||
         times[0].size() < kMinRounds)
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const double begin = seconds_now();
      calls[i]();
      times[i].push_back(seconds_now() - begin);
    }
  std::vector<double> medians;
  medians.reserve(times.size());
  for (std::vector<double>& of_call : times) medians.push_back(median(of_call));
  return medians;
}

class Bench {
 public:
  explicit Bench(const Sizes& sizes)
      : sizes_(sizes),
        memory_("bench", std::size_t{5} << 29, host_memory()),
        stream_{static_cast<int>(sizes.threads)} {}

  void run() {
    linear("qkv", 3 * sizes_.hidden, sizes_.hidden);
    linear("attention out", sizes_.hidden, sizes_.hidden);
    linear("mlp up", 4 * sizes_.hidden, sizes_.hidden);
    linear("mlp down", sizes_.hidden, 4 * sizes_.hidden);
    head();
    attention();
    pointwise();
    norm();
    optimizer();
    print();
  }

 private:
  struct Line {
    std::string name;
    double step_ms;
    double gflop = 0;  // a step; 0 = no product
    double yardstick_ms = 0;
  };

  Tensor tensor(const Shape& shape, DType dtype = DType::f32) { return memory_.allocate(dtype, shape); }
  Tensor random(const Shape& shape) {
    const Tensor x = tensor(shape);
    std::uint32_t state = 1;
    for (float& value : x.span<float>()) {
      state = state * 1664525 + 1013904223;
      value = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
    }
    return x;
  }

  void time(const std::string& name, std::int64_t calls, const std::function<void()>& call) {
    lines_.push_back({name, median_seconds({call})[0] * static_cast<double>(calls) * 1e3});
  }

  // oneDNN's arguments, row-major: c [m, n] = a b (+ c).
  struct Sgemm {
    char trans_a, trans_b;
    std::int64_t m, n, k;
    const Tensor &a, &b;
    float beta;
    const Tensor& c;
  };

  void product(const std::string& name, std::int64_t calls, const std::function<void()>& call,
               const Sgemm& same) {
    const std::vector<double> seconds = median_seconds(
        {call, [&] {
           const std::int64_t a_stride = same.trans_a == 'T' ? same.m : same.k;
           const std::int64_t b_stride = same.trans_b == 'T' ? same.k : same.n;
           dnnl_sgemm(same.trans_a, same.trans_b, same.m, same.n, same.k, 1.0F, same.a.as<float>(), a_stride,
                      same.b.as<float>(), b_stride, same.beta, same.c.as<float>(), same.n);
         }});
    const double times = static_cast<double>(calls);
    lines_.push_back({name, seconds[0] * times * 1e3,
                      2e-9 * times * static_cast<double>(same.m * same.n * same.k),
                      seconds[1] * times * 1e3});
  }

  void products(const std::string& name, std::int64_t calls, std::int64_t rows, std::int64_t out,
                std::int64_t in) {
    const Tensor x = random({rows, in});
    const Tensor y = random({rows, out});
    const Tensor weight = random({out, in});
    const Tensor gradient = random({out, in});
    product(name + " forward", calls, [&] { ops_.gemm.forward(stream_, y, x, weight, Tensor{}); },
            {'N', 'T', rows, out, in, x, weight, 0, y});
    product(name + " d input", calls,
            [&] { ops_.gemm.backward_input(stream_, x, y, weight, Accumulate::no); },
            {'N', 'N', rows, in, out, y, weight, 0, x});
    product(name + " d weight", calls, [&] { ops_.gemm.backward_weight(stream_, gradient, y, x); },
            {'T', 'N', out, in, rows, y, x, 1, gradient});
  }

  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    const ArenaScope scope(memory_);
    products(name, sizes_.layers, sizes_.rows(), out, in);
    const Tensor y = random({sizes_.rows(), out});
    const Tensor bias = random({out});
    time(name + " d bias", sizes_.layers, [&] { ops_.gemm.backward_bias(stream_, bias, y); });
  }

  void head() {
    const ArenaScope scope(memory_);
    const std::int64_t rows = std::min(VocabParallelHeadLoss::tile_rows(sizes_.vocab), sizes_.rows());
    const std::int64_t tiles = (sizes_.rows() + rows - 1) / rows;
    products("head", tiles, rows, sizes_.vocab, sizes_.hidden);
    const Tensor logits = random({rows, sizes_.vocab});
    const Tensor maxima = tensor({rows}, DType::f64);
    const Tensor sums = tensor({2, rows}, DType::f64);
    const Tensor labels = tensor({rows}, DType::i32);
    const VocabShard shard{0, sizes_.vocab};
    time("loss maxima", tiles, [&] { ops_.loss.local_max(stream_, maxima, logits, shard); });
    time("loss sums", tiles, [&] { ops_.loss.local_sums(stream_, sums, logits, maxima, labels, shard); });
    time("loss backward", tiles,
         [&] { ops_.loss.backward(stream_, logits, sums, maxima, labels, shard, 1e-3); });
  }

  void attention() {
    const ArenaScope scope(memory_);
    const std::int64_t h = sizes_.hidden;
    AttentionBackward call;
    call.qkv = random({sizes_.seq, sizes_.batch, 3 * h});
    call.d_qkv = random(call.qkv.shape);
    call.out = random({sizes_.seq, sizes_.batch, h});
    call.d_out = random(call.out.shape);
    call.lse = tensor({sizes_.batch, sizes_.heads, sizes_.seq});
    call.ordinals = tensor({sizes_.batch}, DType::i64);
    call.shape = {sizes_.heads, sizes_.heads, h / sizes_.heads, 0};
    call.workspace =
        tensor({static_cast<std::int64_t>(ops_.attention.workspace_bytes(stream_, call.qkv, call.shape))},
               DType::u8);
    AttentionForward forward;
    forward.out = call.out;
    forward.lse = call.lse;
    forward.qkv = call.qkv;
    forward.ordinals = call.ordinals;
    forward.workspace = call.workspace;
    forward.shape = call.shape;
    time("attention forward", sizes_.layers, [&] { ops_.attention.forward(stream_, forward); });
    time("attention backward", sizes_.layers, [&] { ops_.attention.backward(stream_, call); });
  }

  void pointwise() {
    const ArenaScope scope(memory_);
    const Tensor wide = random({sizes_.rows(), 4 * sizes_.hidden});
    const Tensor other = random(wide.shape);
    time("gelu forward", sizes_.layers, [&] { ops_.activation.gelu_forward(stream_, other, wide); });
    time("gelu backward", sizes_.layers, [&] { ops_.activation.gelu_backward(stream_, other, other, wide); });
    const Tensor hidden = random({sizes_.seq, sizes_.batch, sizes_.hidden});
    const Tensor residual = random(hidden.shape);
    const Tensor row = random({sizes_.hidden});
    const Tensor ordinals = tensor({sizes_.batch}, DType::i64);
    time("residual", 2 * sizes_.layers,
         [&] { ops_.dropout.forward(stream_, hidden, residual, hidden, ordinals, {}); });
    time("bias row", 2 * sizes_.layers, [&] { ops_.elementwise.add_row(stream_, hidden, row); });
    time("copy", 2 * sizes_.layers, [&] { ops_.elementwise.copy(stream_, hidden, residual); });
  }

  void norm() {
    const ArenaScope scope(memory_);
    LayerNormBackward call;
    call.x = random({sizes_.rows(), sizes_.hidden});
    call.dx = random(call.x.shape);
    call.dy = random(call.x.shape);
    call.mean = random({sizes_.rows()});
    call.rstd = random({sizes_.rows()});
    call.gamma = random({sizes_.hidden});
    call.d_gamma = random({sizes_.hidden});
    call.d_beta = random({sizes_.hidden});
    LayerNormForward forward;
    forward.y = call.dy;
    forward.mean = call.mean;
    forward.rstd = call.rstd;
    forward.x = call.x;
    forward.gamma = call.gamma;
    forward.beta = call.d_beta;
    time("norm forward", 2 * sizes_.layers + 1, [&] { ops_.norm.layer_norm_forward(stream_, forward); });
    time("norm backward", 2 * sizes_.layers + 1, [&] { ops_.norm.layer_norm_backward(stream_, call); });
  }

  // One call for the whole model, as many small ones do the same work.
  void optimizer() {
    const ArenaScope scope(memory_);
    const std::int64_t table = sizes_.vocab * sizes_.hidden;
    const std::int64_t size = 12 * sizes_.layers * sizes_.hidden * sizes_.hidden + table;
    AdamwStep call;
    call.value = random({size});
    call.grad = random({size});
    call.first_moment = tensor({size});
    call.second_moment = tensor({size});
    const Tensor result = tensor({1}, DType::f64);
    const Tensor head = random({table});
    time("gradients to zero", 1, [&] { ops_.elementwise.fill(stream_, call.grad, 0); });
    time("second table's to zero", 1, [&] { ops_.elementwise.fill(stream_, head, 0); });
    time("tables' gradients", 1, [&] {
      ops_.elementwise.add(stream_, Tensor{call.grad.data, DType::f32, {table}}, head);
    });
    time("square sums", 1, [&] { ops_.optimizer.square_sum(stream_, result, call.grad); });
    time("adamw", 1, [&] { ops_.optimizer.adamw(stream_, call); });
  }

  void print() const {
    double all_ms = 0;
    double gemm_ms = 0;
    double yardstick_ms = 0;
    double gflop = 0;
    for (const Line& line : lines_) {
      all_ms += line.step_ms;
      if (line.gflop > 0) gemm_ms += line.step_ms;
      yardstick_ms += line.yardstick_ms;
      gflop += line.gflop;
    }
    std::printf("%-24s %10s %7s %9s %9s\n", "op", "ms a step", "share", "GFLOP/s", "oneDNN's");
    for (const Line& line : lines_) {
      std::printf("%-24s %10.2f %6.1f%%", line.name.c_str(), line.step_ms, 100 * line.step_ms / all_ms);
      if (line.gflop > 0)
        std::printf(" %9.1f %9.1f", line.gflop / line.step_ms * 1e3, line.gflop / line.yardstick_ms * 1e3);
      std::printf("\n");
    }
    std::printf("all %.1f ms, products %.1f ms\n", all_ms, gemm_ms);
    std::printf("our GEMM rate %.1f GFLOP/s\n", gflop / gemm_ms * 1e3);
    std::printf("oneDNN GEMM rate %.1f GFLOP/s\n", gflop / yardstick_ms * 1e3);
  }

  Sizes sizes_;
  Arena memory_;
  Stream stream_;
  const Backend& ops_ = cpu_backend();
  std::vector<Line> lines_;
};

}  // namespace
}  // namespace hpt

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: bench_ops LAYERS HIDDEN HEADS [THREADS [SEQUENCE [MICRO_BATCH [VOCABULARY]]]]\n");
    return EXIT_FAILURE;
  }
  const auto number = [&](int at, std::int64_t otherwise) {
    return argc > at ? std::strtoll(argv[at], nullptr, 10) : otherwise;
  };
  hpt::Bench({number(1, 0), number(2, 0), number(3, 0), number(4, 1), number(5, 256), number(6, 4),
              number(7, 50257)})
      .run();
  return EXIT_SUCCESS;
}
