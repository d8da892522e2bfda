"""Programs exported with `Dim.DYNAMIC`, `Dim.AUTO` and named dimensions, run where their sizes are 0, 1, 2 and more.

Export takes sizes to be neither 0 nor 1 while it traces, but PyTorch runs what comes of it with either.
"""

import torch

# The size that stands for any, and those that programs are run with.
ANY = 7
SIZES = (0, 1, 2, 3, 12)


def minima(t):
    x, y, v, s = t.rand(ANY, 5), t.rand(ANY, 5), t.rand(ANY), t.rand(ANY, ANY)
    tensors = dict(
        x=x,
        y=y,
        v=v,
        s=s,
        w=t.rand(5, 4),
        b=t.rand(4),
        c=t.rand(2, ANY),
        # Pictures of any number, and of any size; signals of any length; sequences.
        p=t.rand(ANY, 2, 6, 6),
        img=t.rand(1, 2, ANY, ANY),
        sig=t.rand(1, 2, ANY),
        h=t.rand(ANY, 4, 5),
        q=t.rand(1, 2, ANY, 8),
        vol=t.rand(1, 2, ANY, ANY, ANY),
        k=t.rand(4, 2, 3, 3, low=-1, high=1),
        k1=t.rand(4, 2, 3, low=-1, high=1),
        kt=t.rand(2, 3, 3, 3, low=-1, high=1),
        i=t.ints(0, 1, ANY),
        m=t.rand(ANY, 3, 3) + 4 * torch.eye(3),
        e=t.rand(6, 5),
        g=t.rand(1, 3, 3, 2, low=-1, high=1),
        mask=t.rand(ANY) > 0,
    )
    programs = """
x + y; x * v[:, None]; x * x.shape[0]; x / v.numel(); x + x[:1]; x * x[-1]; (x > 0) & (y > 0); torch.where(mask, v, 0); x - x.mean(0); x * (1 / x.shape[0])
torch.maximum(x, x.mean()); x // (x.shape[0] + 1); x * (x.shape[0] == 1); x.clamp(max=x.shape[0]); torch.full((3,), x.shape[0] - 1); x / (x.shape[0] - 1)
x.sum(0); x.sum(1); x.sum(); x.mean(0); x.mean(1); x.mean(); x.prod(0); x.amax(0); x.amax(1); x.amin(0); x.max(); x.max(0)[0]; x.min(0)[1]; x.argmax(0); x.argmax(1); x.argmin(); x.aminmax(dim=0)
v.std(); v.var(); x.var(0, correction=0); x.std(0); x.std(1); torch.var_mean(x, 0); x.logsumexp(0); (x > 0).any(0); (x > 0).all(); (x > 0).all(0); x.norm(); x.norm(dim=0); torch.linalg.vector_norm(x, float('inf'), 0); torch.linalg.vector_norm(x, 0, 0)
x.nansum(0); x.nanmean(0); x.count_nonzero(0); v.median(); x.median(0)[0]; v.kthvalue(1)[0]; v.topk(1)[0]; v.topk(2)[0]; v.mode()[0]; v.quantile(0.5); v.sort()[0]; v.argsort(); x.sort(0)[0]; v.cummax(0)[0]; x.cumsum(0); x.cumprod(0); x.logcumsumexp(0); v.diff()
x.softmax(0); x.softmax(1); x.log_softmax(0); F.normalize(x, dim=0); F.normalize(x, dim=1); F.layer_norm(x, (5,)); F.layer_norm(x, x.shape); F.rms_norm(x, (5,)); F.cosine_similarity(x, y, 0); F.cosine_similarity(x, y, 1); x.renorm(2, 0, 1.0)
F.batch_norm(p, torch.zeros(2), torch.ones(2)); F.batch_norm(p, None, None, training=True); F.batch_norm(x, None, None, training=True) / 9; F.instance_norm(p); F.instance_norm(sig) / 9; F.group_norm(p, 2); F.group_norm(h, 2)
x @ w; x @ y.t(); x.t() @ y; s @ x; F.linear(x, w.t(), b); torch.addmm(b, x, w); torch.bmm(h, h.transpose(1, 2)); torch.einsum('bij,bkj->bik', h, h); torch.einsum('ni,nj->ij', x, y); v @ x; x.t() @ v; v @ v; torch.outer(v, v); s @ v; torch.matmul(h, w); torch.kron(v, v); torch.cdist(x, y); torch.baddbmm(h, h, h[:, :1, :].expand(-1, 5, -1)); torch.tensordot(x, y, ([0], [0])); torch.dot(v, v); torch.mv(s, v); F.bilinear(x, y, e.view(1, 6, 5)[:, :5], None); torch.cov(x.t()); torch.corrcoef(x.t()); torch.trapezoid(v); torch.cross(m, m, dim=1)
x.squeeze(0); x.squeeze(); x.squeeze(1) + 1; x[:, :1].squeeze(-1); x.unsqueeze(0).squeeze(0); x[:, :1].squeeze(); x.squeeze(0).sum(0); torch.squeeze(h, (0, 1)); s.squeeze(0); x[None].squeeze(); c.squeeze(1).mean(1); v.squeeze() * 2; x.sum(1, keepdim=True).squeeze(); h.mean(1).squeeze(0) @ w
x.reshape(-1); x.view(-1, 5); x.view(5, -1); x.reshape(-1, x.shape[0]); s.view(-1); x.flatten(); h.flatten(1); h.flatten(0, 1); h.view(-1, 5); h.view(-1, 2, 10); h.reshape(h.shape[0] * 4, 5); x.view(-1); x.t().reshape(-1); x.unflatten(0, (-1, 1)); h.transpose(1, 2).reshape(-1, 4); x.reshape(1, -1); v.view(1, 1, -1); p.flatten(1); p.flatten(2).transpose(1, 2); c.reshape(-1, 2); c.view(2, 1, -1); x.reshape(-1, 1, 5)
v.expand(3, -1); v.expand(3, v.shape[0]); x.unsqueeze(1).expand(-1, 3, -1); e[:1].expand(x.shape[0], -1); v[:1].expand(v.shape[0]); b.expand(x.shape[0], 4); x[:1].expand_as(x); x.sum(0, keepdim=True).expand(x.shape[0], -1); x.expand(2, *x.shape); torch.broadcast_to(v[:, None], (v.shape[0], 3)); x.repeat(2, 1); v.repeat(v.shape[0]); v.tile(3); v.repeat_interleave(2); x.repeat_interleave(2, 0); x.sum_to_size(1, 5); e[0].repeat(x.shape[0], 1); torch.broadcast_tensors(v[:, None], e[0])[0] * 1
torch.cat([x, x]); torch.cat([x, y, e]); torch.cat([x, y], 1); torch.cat([v, v[:1]]); torch.cat([x[:2], x]); torch.cat([e[:1].expand(x.shape[0], -1), x], 1); torch.stack([x, y]); torch.stack([v, v], 1); torch.cat([h[:, :1], h], 1); torch.hstack([v, v]); torch.vstack([x, e]); torch.cat([x, torch.zeros(0, 5)]); torch.cat([torch.zeros(0), v]); torch.cat([c, c[:, -1:]], 1); torch.column_stack([v, v]); torch.dstack([v, v]); torch.block_diag(x, e); torch.cat([c[:, 1:][:, i::2] for i in range(2)]); torch.cat([s[1:, 1:][i::2, j::2] for i in range(2) for j in range(2)], 1)
x[0]; x[1]; x[-1]; x[1:]; x[:-1]; x[::2]; x[:3]; x[2:]; x[-2:]; x[:, 0]; x[x.shape[0] // 2]; x[: x.shape[0] // 2]; x[x.shape[0] // 2 :]; x.narrow(0, 0, 1); x.narrow(0, 0, x.shape[0]); v[v.shape[0] - 1]; x.select(0, 0) * 2; c[:, 0]; c[:, -1]; c[:, 1:] - c[:, :-1]; x[1:] - x[:-1]; h[:, -1]; x[:1]; x.flip(0); x.roll(1, 0); x.roll(-2, 0); x.unfold(0, 2, 1); v.unfold(0, 3, 2); v.unfold(0, 1, 1); s.diagonal(); s.diag(); v.diag(); s.tril(); s.triu(1); s.trace(); s.t() + 1; torch.rot90(s); s.diagonal(1); torch.diag_embed(v)
x.chunk(2)[0]; x.chunk(2, 1)[1]; x.chunk(2)[1]; x.split(5)[0]; x.split([1, x.shape[0] - 1])[1]; torch.tensor_split(x, 2)[0]; torch.tensor_split(x, 3)[2]; x.unbind(1)[2]; c.chunk(2, 1)[0]; x.tensor_split((1, 3))[1]; x.chunk(7)[0]; c.unbind(0)[1]
F.pad(v, (1, 2)); F.pad(x, (0, 0, 1, 1), value=2); F.pad(x, (0, 0, -1, 0)); F.pad(sig, (1, 1), mode='reflect'); F.pad(sig, (2, 2), mode='reflect'); F.pad(sig, (2, 1), mode='replicate'); F.pad(sig, (1, 1), mode='circular'); F.pad(sig, (2, 2), mode='circular'); F.pad(img, (1, 1, 1, 1), mode='reflect'); F.pad(img, (1, 1, 1, 1), mode='replicate'); F.pad(p, (1, 1, 1, 1), mode='reflect'); F.pad(p, (1, 0, 0, 1)); F.pad(p, (1, 1, 2, 2), mode='circular'); F.pad(img, (0, 0, 2, 1), mode='constant'); F.pad(sig, (-1, -1))
F.conv2d(p, k); F.conv2d(p, k, None, 2, 1); F.conv2d(img, k, padding=1); F.conv2d(img, k); F.conv2d(img, k, stride=2, padding=1); F.conv1d(sig, k1); F.conv1d(sig, k1, padding=1, stride=2); F.conv1d(sig, k1, dilation=2, padding=2); F.conv_transpose2d(p, kt, stride=2); F.conv_transpose2d(img, kt, stride=2, padding=1); F.conv2d(img, k, padding='same'); F.conv1d(h, k1.view(2, 4, 3)); F.conv2d(p, k[:, :1], groups=2); F.conv3d(vol, k.view(4, 2, 1, 3, 3), padding=(0, 1, 1))
F.max_pool2d(p, 2); F.max_pool2d(img, 2); F.max_pool2d(img, 2, ceil_mode=True); F.max_pool2d(img, 3, 2, 1); F.max_pool1d(sig, 2); F.avg_pool2d(p, 2); F.avg_pool2d(img, 2); F.avg_pool1d(sig, 2); F.avg_pool1d(sig, 3, 2, 1); F.adaptive_avg_pool2d(p, 1); F.adaptive_avg_pool2d(p, 3); F.adaptive_avg_pool2d(img, 1); F.adaptive_avg_pool2d(img, 2); F.adaptive_max_pool2d(img, 2); F.adaptive_avg_pool1d(sig, 3); F.adaptive_max_pool1d(sig, 1); F.lp_pool2d(p, 2, 2); F.lp_pool1d(sig, 2, 2); F.avg_pool3d(vol, 2); F.max_pool3d(vol, 1); F.adaptive_avg_pool3d(vol, 1); F.max_pool2d(p, 2, return_indices=True)[1]; F.unfold(img, 2); F.unfold(p, 2); F.fold(h.transpose(1, 2)[:, :4], (3, 3), 2)
F.interpolate(p, scale_factor=2); F.interpolate(p, (3, 4), mode='bilinear'); F.interpolate(img, scale_factor=2); F.interpolate(img, scale_factor=2, mode='bilinear'); F.interpolate(img, scale_factor=2., mode='bilinear', align_corners=True); F.interpolate(img, (4, 5), mode='bilinear', align_corners=True); F.interpolate(img, (4, 5), mode='bicubic'); F.interpolate(img, (4, 5), mode='bicubic', align_corners=True); F.interpolate(sig, 5, mode='linear'); F.interpolate(sig, 1, mode='linear', align_corners=True); F.interpolate(e.view(1, 1, 6, 5), (x.shape[0], x.shape[0]), mode='bilinear', align_corners=True); F.interpolate(e.view(1, 1, 6, 5), (x.shape[0], 3), mode='bicubic', align_corners=True); F.interpolate(e.view(1, 1, 6, 5), (x.shape[0], 3), mode='nearest'); F.interpolate(img, (4, 5), mode='area'); F.interpolate(img, (4, 5), mode='nearest-exact'); F.interpolate(vol, scale_factor=2, mode='trilinear'); F.interpolate(img, scale_factor=0.5); F.interpolate(img, scale_factor=0.5, mode='bilinear')
F.grid_sample(img, g); F.grid_sample(img, g, align_corners=True); F.grid_sample(img, g, padding_mode='reflection'); F.grid_sample(img, g, padding_mode='reflection', align_corners=True); F.grid_sample(img, g, padding_mode='border'); F.grid_sample(img, g, mode='bicubic'); F.grid_sample(p, g.expand(p.shape[0], -1, -1, -1)); F.affine_grid(m[:, :2], (m.shape[0], 1, 3, 2)); F.affine_grid(m[:1, :2], (1, 1, x.shape[0], x.shape[0])); F.affine_grid(m[:1, :2], (1, 1, x.shape[0], 2), align_corners=True); F.pixel_shuffle(p.repeat(1, 2, 1, 1), 2); F.channel_shuffle(p, 2); F.pixel_shuffle(img.repeat(1, 2, 1, 1), 2)
F.scaled_dot_product_attention(q, q, q); F.scaled_dot_product_attention(q, q, q, is_causal=True); F.scaled_dot_product_attention(q[:, :, :1], q, q); F.scaled_dot_product_attention(h, h, h); F.scaled_dot_product_attention(h[:, None], h[:, None], h[:, None]); (q @ q.transpose(-2, -1)).softmax(-1) @ q; F.scaled_dot_product_attention(q, q, q, mask.expand(v.shape[0], -1)); F.scaled_dot_product_attention(e.view(1, 1, 6, 5), e.view(1, 1, 6, 5), e.view(1, 1, 6, 5)) + v.sum(); (q @ q.transpose(-2, -1)).tril().softmax(-1); F.scaled_dot_product_attention(q, q, q, s.tril()); F.scaled_dot_product_attention(q, torch.cat([q, q], 2), torch.cat([q, q], 2))
F.interpolate(img, (4, 5), mode='bilinear', antialias=True); F.interpolate(img, (4, 5), mode='bicubic', align_corners=True, antialias=True); F.interpolate(e.view(1, 1, 6, 5), (x.shape[0], 3), mode='bicubic', antialias=True); F.interpolate(img, scale_factor=0.4, mode='bilinear', antialias=True); F.interpolate(img, scale_factor=1.1); F.interpolate(p, (x.shape[0], 4), mode='bilinear', align_corners=True, antialias=True)
torch.fft.rfft(x, dim=0); torch.fft.fft(v); torch.fft.ifft(s, norm='ortho'); torch.fft.irfft(torch.fft.rfft(v), n=v.shape[0]); torch.fft.fft2(s); torch.fft.irfft2(torch.fft.rfft2(s, norm='forward'), s.shape, norm='forward'); torch.fft.fft(v, n=9); torch.fft.rfft(v, n=2 * v.shape[0]); torch.fft.hfft(torch.fft.ihfft(v), v.shape[0]); torch.fft.ifft(torch.fft.fft(x, dim=0) * 2, dim=0); torch.fft.fftn(s, norm='ortho'); torch.fft.fft2(h).real; torch.fft.irfft(torch.fft.rfft(sig, n=24), n=24)
torch.combinations(v); torch.combinations(v, with_replacement=True); F.pdist(x); F.pdist(x, 1.0); x[: x.shape[0] - x.shape[0] % 4].view((x.shape[0] - x.shape[0] % 4) // 4, 4, 5); x[: x.shape[0] // 4 * 4].reshape(-1, 4, 5); torch.arange(v.shape[0], -2, -1.0); torch.linalg.svdvals(x); torch.linalg.qr(x)[1].abs(); torch.linalg.matrix_norm(x, 2); torch.linalg.pinv(x); torch.linalg.matrix_rank(x)
e[i]; F.embedding(i, e); e.index_select(0, i); x.gather(0, i[:, None].expand(-1, 5)); torch.zeros(6, 5).index_add(0, i, x); torch.zeros(6).scatter_add(0, i, v); torch.zeros(6).scatter(0, i, v); F.one_hot(i, 3); x[i]; x[i, i]; v.take(i); x.take_along_dim(i[:, None], 0); x.index_fill(0, i, 1.0); x.masked_fill(mask[:, None], 0); v.masked_fill(v > 0, 1); v.index_put((i,), v); torch.zeros(4).index_put((i,), v, accumulate=True); F.embedding_bag(i, e, i[:1]); x.scatter_reduce(0, i[:, None].expand(-1, 5), x, 'amax'); v.nonzero(); v[v > 0]; x[mask]; mask.nonzero()[:, 0]; v.masked_select(mask); torch.bincount(i, minlength=3); torch.zeros(3, 5).index_copy(0, i[:1], x[:1]); v.unique(); x[:, [0, 2]]; x[[0]]; x[[0, 1]]; x[torch.tensor([0, -1])]; F.embedding(i[:2], x); x.index_select(0, torch.tensor([0]))
torch.arange(x.shape[0]); torch.arange(x.shape[0] * 2).view(-1, 2); torch.ones(x.shape[0], 2); torch.zeros_like(x); x.new_zeros(x.shape); torch.eye(x.shape[0]); torch.linspace(0, 1, x.shape[0]); torch.linspace(-1, 1, 2 * x.shape[0]); torch.logspace(0, 1, x.shape[0]); torch.meshgrid(v, v, indexing='ij'); torch.tril(torch.ones(x.shape[0], x.shape[0])); torch.tril_indices(x.shape[0], x.shape[0]); torch.arange(1, x.shape[0]); torch.arange(x.shape[0] - 1, -1, -1); torch.hann_window(x.shape[0]); torch.hamming_window(x.shape[0], periodic=False); torch.cartesian_prod(v, v); torch.triu(torch.full((x.shape[0], x.shape[0]), float('-inf')), 1); torch.bartlett_window(x.shape[0]); torch.blackman_window(x.shape[0]); torch.kaiser_window(x.shape[0]); torch.vander(v, 3); torch.empty(x.shape[0], 0).sum(1)
F.cross_entropy(x, i); F.cross_entropy(s, i); F.cross_entropy(x, i, reduction='none'); F.nll_loss(x, i); F.mse_loss(x, y); F.l1_loss(x, y, reduction='sum'); F.smooth_l1_loss(x, y); F.binary_cross_entropy_with_logits(x, y); F.kl_div(x, y, reduction='batchmean'); F.huber_loss(x, y); F.cosine_embedding_loss(x, y, v.sign()); F.triplet_margin_loss(x, y, x); F.margin_ranking_loss(v, v, v); F.gaussian_nll_loss(x, y, x.abs()); F.poisson_nll_loss(x, y); F.hinge_embedding_loss(v, v.sign()); F.soft_margin_loss(x, y.sign()); F.pairwise_distance(x, y)
F.glu(x.view(-1, 1, 5).expand(-1, 2, -1), 1); F.gelu(x); F.softplus(x); F.prelu(p, b[:2]); F.elu(v); F.celu(x); F.rrelu(x); F.hardswish(x); F.threshold(x, 0, 1); F.dropout(x, 0.5, False); F.gumbel_softmax(x).sum() * 0; F.dropout(x, 1.0) * 2; x.bernoulli(0.0)
torch.linalg.inv(m); torch.linalg.det(m); torch.linalg.solve(m, m[:, :, 0]); torch.linalg.solve(m, m); torch.linalg.cholesky(m @ m.transpose(1, 2)); torch.linalg.qr(m)[1].abs(); torch.linalg.eigvalsh(m + m.mT); torch.linalg.svdvals(m); torch.linalg.matrix_norm(m); torch.linalg.norm(x); torch.linalg.norm(s); torch.linalg.matrix_power(m, 3); torch.linalg.slogdet(m)[1]; torch.linalg.det(s); torch.linalg.inv(s + 9 * torch.eye(s.shape[0])); torch.linalg.matrix_exp(m); torch.linalg.lu_factor(m)[0]; torch.linalg.pinv(x); torch.linalg.lstsq(m, m)[0]; torch.linalg.multi_dot([x, w, b[:, None]]); torch.linalg.matrix_norm(x); torch.linalg.cond(m); torch.linalg.vecdot(x, y)
torch.fft.fft(x).abs(); torch.fft.rfft(x).abs(); torch.fft.ifft(x, dim=1).real; torch.fft.fftshift(v); torch.fft.fftfreq(x.shape[0]); torch.fft.fft2(p).abs(); torch.fft.irfft(x)
x.clone().add_(1); z = x.clone(); z[0] = 1; z; z = x.clone(); z[1:] += 1; z; z = x.clone(); z[-1] *= 2; z; z = torch.zeros(x.shape[0] + 1, 5); z[:-1] = x; z; z = x.clone(); z[:, 1] = v; z; z = x.clone(); z[x > 0] = 0; z; z = torch.zeros(x.shape[0], 3); z[:, 0] = 1; z; z = x.clone(); z.squeeze_(0); z * 1; x.select_scatter(e[0], 0, 0); s.diagonal_scatter(v); z = x.clone(); z[:2] = 0; z; z = x.clone(); z.fill_(3); z; z = x.clone(); z.copy_(e[0]); z
torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,)); torch.cond(torch.tensor(True), lambda x: x.sum(0), lambda x: x.mean(0), (x,)); SCAN(lambda c, r: (c + r, c * r), e[0] * 1, x); SCAN(lambda c, r: (c + r, c * 2), e[0] * 1, x)[0]
torch.searchsorted(v.sort()[0], v); torch.bucketize(v, e[0].sort()[0]); torch.histc(v, 4, -1, 1); torch.isin(v, e[0]); torch.cumulative_trapezoid(v); torch.gradient(v)[0]; torch.cov(c); v.logcumsumexp(0); torch.movedim(h, 0, 1).contiguous(); torch.swapaxes(h, 0, 2) + 1; h.permute(2, 0, 1).reshape(5, -1); torch.addcmul(x, x, y); torch.lerp(x, y, 0.3); torch.addr(s, v, v); torch.vdot(v, v); torch.polar(v.abs(), v).abs(); torch.complex(v, v).angle(); x.view(torch.int32).view(torch.float32) * 1; x.to(torch.int64) % (x.shape[0] + 1)
"""
    # Of nothing, PyTorch refuses these, though there is a result without elements.
    not_of_nothing = """
F.group_norm(img, 1); F.local_response_norm(p, 3); x.reshape(x.shape[0], -1); h.view(h.shape[0], -1); x.reshape(x.shape[0], 1, -1); F.avg_pool2d(img, 3, 2, 1, ceil_mode=True); z = s.clone(); z[:, 0].add_(v); z.diagonal().zero_(); z; x.slice_scatter(e[:1], 0, 0, 1); MAP(lambda r: (r * 2, r.sum()), x); JOINED(lambda a, b: a + b, x, dim=0, combine_mode='pointwise')
"""
    number = 0
    for text in listed(programs):
        t.least(text, tensors, ANY, SIZES, number)
        number += 1
    for text in listed(not_of_nothing):
        t.least(text, tensors, ANY, SIZES[1:], number)
        number += 1


def listed(programs):
    """The programs of a text. Statements lead up to the name `z`, which they assign to."""
    statements = []
    for part in programs.strip().replace("\n", "; ").split("; "):
        statements.append(part)
        if part.startswith("z = ") or part.startswith(("z[", "z.")) and not part.endswith("* 1"):
            continue
        yield "; ".join(statements)
        statements = []


FAMILIES = {"minima": (["f32"], minima)}
