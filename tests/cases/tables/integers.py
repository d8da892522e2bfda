"""Programs with an integer among their inputs, run with numbers from one end of 64 bits to the other.

Each is a program of its own; the exported program says which numbers it takes, and what it gives for them.
"""

EDGE = 2**63
# Around what the sizes are, where 32 bits end, where a product with a size leaves 64 bits, and the ends of 64 bits.
VALUES = (
    *(-EDGE, 1 - EDGE, -(2**62), -(2**61), -(2**32) - 1, -(2**31), -1000, -9, -8, -2, -1),
    *(0, 1, 2, 3, 7, 8, 9, 100, 2**31, 2**32 + 1, 2**61, 2**62, EDGE - 1),
)

# Windows and positions.
POSITIONS = [
    "x.select(0, n) * 2",
    "x[n] + 1",
    "x[-n] + 1",
    "x[:, n] + 1",
    "x[n:n + 2] + 1",
    "x.narrow(0, n, 2) + 1",
    "x.narrow(0, 1, n) + 1",
    "x.narrow(0, n, n) + 1",
    "torch.select_scatter(x, x[0] * 2, 0, n)",
    "torch.slice_scatter(x, x[:2] * 2, 0, n, n + 2)",
    "y = x.clone(); y[n] = 5.0; y",
    "y = x.clone(); y.select(0, n).mul_(3); y",
    "x.diagonal(n) + 1",
    "torch.diag(v, n)",
    "torch.diagonal_scatter(x, x.diagonal(n) * 2, n)",
    "x.tril(n)",
    "x.triu(n)",
    "torch.tril_indices(4, 5, n)",
    "x.unfold(0, n, 1).sum(-1)",
    "x.unfold(0, 2, n) + 1",
    "x.as_strided((n, 2), (1, 1)) + 1",
    "torch.split(x, n)",
    "torch.split(x, [n, x.shape[0] - n])",
    "torch.chunk(x, n)",
    "v.index_select(0, torch.full((2,), n))",
    "v.gather(0, torch.full((2,), n))",
    "v.take(torch.full((2,), n))",
    "v[torch.full((2,), n)]",
    "v.index_fill(0, torch.full((2,), n), 3.0)",
    "v.scatter(0, torch.full((2,), n), 3.0)",
    "F.embedding(torch.full((2,), n), x)",
    "F.one_hot(torch.arange(3), n)",
    "v.topk(n).values",
    "v.kthvalue(n).values",
]

# Sizes and counts.
SIZES = [
    "torch.zeros(n) + 1",
    "torch.zeros(n, 3).sum(0)",
    "torch.zeros(n * 2).sum()",
    "torch.zeros(n + 1).sum()",
    "torch.full((n,), n).sum()",
    "torch.arange(n)",
    "torch.arange(n).sum()",
    "torch.arange(n, n + 4)",
    "torch.arange(n, 8)",
    "torch.arange(0, n, 3)",
    "torch.arange(8, n, -1)",
    "torch.linspace(0, 1, n)",
    "torch.eye(n)",
    "torch.eye(n, 3)",
    "v.repeat(n)",
    "v.repeat(n, n)",
    "v.repeat(n, 2).sum()",
    "v.tile(n)",
    "v.repeat_interleave(n)",
    "v.expand(n, 5) + 1",
    "v[:1].expand(n) + 1",
    "v.new_empty(n).fill_(2.0)",
    "F.pad(v, (n, 0))",
    "F.pad(v, (0, n))",
    "F.pad(v, (n, n))",
    "F.pad(v, (n, -n)) + 1",
    "F.pad(v, (-n, n)) + 1",
    "F.pad(v, (0, -n))",
    "F.pad(x, (n, -n, 1, 1))",
    "F.pad(x, (1, n), value=2.0)",
    "F.pad(x[None], (n, 0), mode='replicate')",
    "F.pad(x[None], (n, 0), mode='circular')",
    "torch.cat([v, v.new_zeros(n)])",
    "F.interpolate(x[None], n)",
    "F.interpolate(x[None], n, mode='linear')",
    "F.adaptive_avg_pool1d(x[None], n)",
    "F.avg_pool1d(x[None], n)",
    "F.max_pool1d(x[None], n)",
    "F.avg_pool1d(x[None], 2, n)",
    "F.max_pool2d(x[None], n, 1)",
    "F.unfold(x[None, None], (n, 2))",
]

# Not of a number read from data: the export asks for offsets in storages, or for sizes without a bound.
STATED = [
    "x[n:] + 1",
    "x[:n] + 1",
    "x[n::2] + 1",
    "y = x.clone(); y[n:] = 5.0; y",
    "y = x.clone(); y[:n] += 1; y",
    "x.as_strided((2, 2), (n, 1)) + 1",
    "x.as_strided((2, 2), (1, 1), n) + 1",
    "torch.tensor_split(x, [n])",
]

# Numbers.
NUMBERS = [
    "v + n",
    "v * n",
    "v - 3 * n",
    "v / n",
    "v // n",
    "v % n",
    "v.abs() ** n",
    "v.clamp(max=n)",
    "v.long() + n",
    "v.long() * n",
    "v.long() << n",
    "v.long() >> n",
    "v.long().bitwise_and(n)",
    "v + n // 3",
    "v + n % 3",
    "v + n * n",
    "v + (n + 7) // 8 * 8",
    "v + (-n)",
    "v + max(n, 3) + min(n, 4)",
    "v + torch.sym_max(n, 3)",
    "v * (n > 3)",
    "torch.full((3,), n)",
    "torch.full((3,), n * 2)",
    "torch.where(v > n, v, n)",
    "v.masked_fill(v > 0, n)",
    "v.roll(n)",
    "x.roll(n, 1)",
    "x.roll((n, -n), (0, 1))",
    "x.roll(n).sum(0)",
    "torch.rot90(x, n)",
    "v.long().eq(n)",
    "x.sum(0) + x.shape[0] * n",
    "torch.bucketize(torch.full((2,), n), torch.arange(5))",
    "torch.cumsum(torch.full((4,), n), 0)",
    "torch.polygamma(n, v.abs() + 1)",
]


# Divisors, of which 0 is none.
QUOTIENTS = [
    "v + 7 // n",
    "v + (-7) % n",
    "v.long() // n",
    "v.long() % n",
    "v.long().fmod(n)",
    "v.int() // n",
    "v.long() ** n",
    "torch.div(v.long(), n, rounding_mode='trunc')",
    "v.long() // torch.full((5,), n)",
    "v.long() % torch.full((), n)",
    "v[:0].long() // n",
]

# Numbers of a type that may not have them.
ELEMENTS = [
    "torch.scalar_tensor(n, dtype=torch.int32)",
    "torch.scalar_tensor(n, dtype=torch.uint8)",
    "torch.scalar_tensor(n, dtype=torch.float16)",
    "torch.full((2,), n, dtype=torch.int8)",
    "torch.full((2,), n, dtype=torch.float16)",
    "torch.full_like(v, n, dtype=torch.int16)",
    "v.int().fill_(n)",
    "v.int().masked_fill(v > 0, n)",
    "torch.where(v > 0, v.int(), n)",
    "v.int().clamp(max=n)",
    "v.to(torch.uint8).clamp(min=n)",
    "v.int() + n",
    "v.to(torch.uint8).bitwise_and(n)",
    "v.int() << n",
    "torch.arange(n, n + 3, dtype=torch.int32)",
]

# Steps, and padding by reflection.
STEPS = [
    "x[::n] + 1",
    "x[1::n] + 1",
    "x[:7:n].sum(0)",
    "y = x.clone(); y[::n] = 5.0; y",
    "torch.slice_scatter(x, x[::n] * 2, 0, 0, 8, n)",
    "torch.arange(0, 8, n)",
    "torch.arange(0, 8, n).sum()",
    "torch.arange(0, 8 * (n - 2), n - 2)",
    "x.var(0, correction=n)",
    "F.pad(x[None], (n, 0), mode='reflect')",
    "F.pad(x[None], (0, n), mode='reflect')",
    "F.pad(x[None], (n, n), mode='reflect')",
    "F.pad(x[None, None], (n, 0, 0, n), mode='reflect')",
    "F.pad(x[None], (n, -n), mode='replicate')",
]

# Factors and bounds.
SCALARS = [
    "torch.add(v, v, alpha=n)",
    "torch.add(v.long(), v.long(), alpha=n)",
    "torch.sub(v.int(), v.int(), alpha=n)",
    "torch.rsub(v, v, alpha=n)",
    "torch.addcmul(v, v, v, value=n)",
    "torch.addcmul(v.int(), v.int(), v.int(), value=n)",
    "torch.addcdiv(v, v, v + 10, value=n)",
    "torch.addmm(x[0, 0].expand(2, 2), w[0].T, w[0], beta=n)",
    "torch.addmm(x[0, 0].expand(2, 2) + math.nan, w[0].T, w[0], beta=n)",
    "torch.baddbmm(x[0, 0].expand(4, 8, 8), w, w.transpose(1, 2), beta=2, alpha=n)",
    "v.index_add(0, torch.arange(2), v[:2], alpha=n)",
    "v.int().index_fill(0, torch.arange(2), n)",
    "v.int().scatter(0, torch.arange(2), n)",
    "torch.ops.aten.constant_pad_nd(v, [1, 2], n)",
    "torch.ops.aten.constant_pad_nd(v.int(), [1, -2], n)",
    "F.leaky_relu(v, n)",
    "F.hardtanh(v, -1, n)",
    "F.threshold(v, n, 2)",
    "F.threshold(v.int(), 1, n)",
    "v.clamp(n)",
    "v.clamp(min=n, max=8)",
    "v.long().clamp(n)",
    "torch.linspace(0, n, 5)",
    "torch.linspace(n, 0, 5)",
    "F.elu(v, n)",
    "torch.ops.aten.elu(v, n, n, n)",
    "F.celu(v, n)",
    "F.softplus(v, n)",
    "F.softplus(v, 2, n)",
    "F.hardshrink(v, n)",
    "F.softshrink(v, n)",
    "torch.renorm(x, 2, 0, n)",
    "torch.histc(v, 5, 0, n)",
    "torch.histc(v, 5, n, 4)",
    "F.nll_loss(x.log_softmax(1), torch.arange(8) % 5, ignore_index=n)",
    "F.cross_entropy(x, torch.arange(8) % 5, ignore_index=n, label_smoothing=0.1)",
]

# Orders of norms. Of a number read from data the export asks whether it is even.
ORDERS = [
    "torch.linalg.vector_norm(x, n)",
    "torch.linalg.vector_norm(x, n * 1.0, 0)",
    "torch.norm(x, n, 1, keepdim=True)",
    "torch.dist(x, 2 * x + 1, n)",
    "torch.renorm(x, n, 0, 3.0)",
    "F.normalize(x, n)",
]

# How the windows of convolutions lie.
WINDOWS = [
    "F.conv1d(x[None], w, stride=n)",
    "F.conv1d(x[None], w, padding=n)",
    "F.conv1d(x[None], w, dilation=n)",
    "F.conv1d(x, w, w[:, 0, 0], n, n, n)",
    "F.conv1d(x[None], w[:, :4], None, n, 1, 1, 2)",
    "F.conv1d(x[None], w, padding='same', dilation=n)",
    "F.conv2d(x.view(1, 2, 4, 5), w[:, :4].reshape(4, 2, 2, 2), stride=(n, 1))",
    "F.conv2d(x.view(1, 2, 4, 5), w[:, :4].reshape(4, 2, 2, 2), None, n, n, n)",
    "F.conv_transpose1d(x[None], u, stride=n)",
    "F.conv_transpose1d(x[None].repeat(1, 1, 2), u, padding=n)",
    "F.conv_transpose1d(x[None], u, dilation=n)",
    "F.conv_transpose1d(x, u, u[0, :, 0], 4, 0, n)",
    "F.conv_transpose1d(x[None], u, None, n, 1, 0, 2, n)",
    "F.conv_transpose2d(x.view(1, 2, 4, 5), w[:2].reshape(2, 4, 2, 2), None, n, 1)",
]

# What takes only some numbers, of which 4 is one.
DIVISORS = [
    "x.view(n, -1) + 1",
    "x.view(-1, n) + 1",
    "x.reshape(n, 40 // n) + 1",
    "x.unflatten(0, (n, -1)) + 1",
    "x.unflatten(0, (-1, n)).sum(0)",
    "F.avg_pool2d(x[None], 8, 1, n)",
    "F.max_pool1d(x[None], 8, 1, n)",
    "x[:n] + x[n:]",
]


def fill(t):
    t.bind(x=t.rand(8, 5), v=t.rand(5), w=t.rand(4, 8, 2), u=t.rand(8, 4, 2))
    for text in POSITIONS + STATED + SIZES + NUMBERS + QUOTIENTS + ELEMENTS + STEPS + SCALARS + ORDERS + WINDOWS:
        t.integer(text, 3, VALUES)
    for text in DIVISORS:
        t.integer(text, 4, VALUES)
    for text in POSITIONS + NUMBERS + QUOTIENTS + ELEMENTS + SCALARS:
        t.integer_of_data(text, 3, VALUES)


FAMILIES = {"integers": (["f32"], fill)}
