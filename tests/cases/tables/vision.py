"""What detectors are made of: torchvision's own operators. Needs torchvision besides PyTorch."""

import torch
import torchvision

V = "torch.ops.torchvision"


def regions(t, count, height, width, images):
    """Images and corners of regions, some of them beyond the image or empty."""
    low = t.rand(count, 2, low=-4, high=12)
    size = t.rand(count, 2, low=-1, high=14)
    high = low + size * torch.tensor([1.0, 0.75], dtype=t.dtype)
    return torch.cat([t.ints(0, images, count, 1).to(t.dtype), low, high], 1)


def boxes(t, count):
    low = t.rand(count, 2, low=0, high=9)
    return torch.cat([low, low + t.rand(count, 2, low=0.5, high=6)], 1)


def pools(t):
    t.bind(x=t.rand(2, 12, 9, 11), r=regions(t, 6, 9, 11, 2), none=t.rand(0, 5), one=t.rand(1, 4, 1, 1), r1=regions(t, 3, 1, 1, 1))
    t(f"{V}.roi_align(x, r, 0.5, 2, 3, -1, True), {V}.roi_align(x, r, 0.5, 3, 2, 1, False), {V}.roi_align(x, r, 0.5, 1, 2, 3, True)")
    for scale in (1.0, 0.37):
        for ratio in (0, 2):
            for aligned in (False, True):
                t(f"{V}.roi_align(x, r, {scale}, 2, 3, {ratio}, {aligned})")
        for ratio in (0, 2):
            t(f"{V}.ps_roi_align(x, r, {scale}, 2, 3, {ratio})")
        t(f"{V}.roi_pool(x, r, {scale}, 2, 3), {V}.ps_roi_pool(x, r, {scale}, 2, 3), {V}.roi_pool(x, r, {scale}, 5, 1)")
    t(
        f"{V}.roi_align(x, none, 1.0, 2, 2, 2, True), {V}.roi_align(x, none, 1.0, 2, 2, 0, True), {V}.roi_pool(x, none, 1.0, 2, 2)",
        f"{V}.roi_align(one, r1, 1.0, 2, 2, 0, False), {V}.roi_pool(one, r1, 1.0, 2, 2), {V}.ps_roi_align(one, r1, 1.0, 2, 2, 2)",
        f"{V}.roi_align(x.transpose(2, 3), r, 0.5, 3, 2, 2, False)",
        "torchvision.ops.roi_align(x, [r[:2, 1:], r[2:, 1:]], 3), torchvision.ops.roi_pool(x, [r[:2, 1:], r[2:, 1:]], (2, 1), 0.25)",
    )


def overlaps(t):
    t.bind(b=boxes(t, 23), s=t.rand(23, low=0, high=1), c=t.ints(0, 3, 23))
    for threshold in (0.0, 0.3, 0.5, 0.95, 1.0):
        t(f"torchvision.ops.nms(b, s, {threshold})")
    t(
        "torchvision.ops.nms(b, s * 0, 0.4), torchvision.ops.nms(b * 0, s, 0.4)",
        "torchvision.ops.batched_nms(b, s, c, 0.3)",
        "k = torchvision.ops.nms(b, s, 0.4); b[k], s[k]",
        "torchvision.ops.box_iou(b, b[:5]), torchvision.ops.generalized_box_iou(b, b[:5]), torchvision.ops.box_convert(b, 'xyxy', 'cxcywh'), torchvision.ops.clip_boxes_to_image(b, (7, 8))",
        "torchvision.ops.remove_small_boxes(b, 3.0)",
    )


def deformed(t):
    t.bind(x=t.rand(2, 6, 7, 8), w=t.rand(4, 6, 3, 2), g=t.rand(4, 3, 3, 2), o=t.rand(2, 12, 5, 7), o2=t.rand(2, 24, 5, 7), m=t.rand(2, 6, 5, 7), m2=t.rand(2, 12, 5, 7), bias=t.rand(4))
    t.bind(os=t.rand(2, 12, 3, 3), line=t.rand(4, 6, 1, 1), ol=t.rand(2, 2, 7, 8))
    call = "torchvision.ops.deform_conv2d"
    t(
        f"{call}(x, o, w), {call}(x, o, w, bias), {call}(x, o, w, bias, mask=m), {call}(x, o * 3, w, mask=m)",
        f"{call}(x, o2, w, bias), {call}(x, o2, g, bias, mask=m2), {call}(x, o, g)",
        f"{call}(x, os, w, bias, stride=(2, 3), padding=(1, 2), dilation=(2, 3)), {call}(x, ol, line)",
    )


def fill(t):
    for part in (pools, overlaps, deformed):
        part(t)


def detectors(t):
    """Any number of boxes and regions; of the boxes that a mask picks, none too."""
    b, s, c = boxes(t, 7), t.rand(7, low=0, high=1), t.ints(0, 3, 7)
    sets = [{"b": b[:n], "s": s[:n], "c": c[:n]} for n in (2, 3, 6)] + [{"b": b, "s": s * 0, "c": c}]
    for text in (
        "torchvision.ops.nms(b, s, 0.3)",
        "k = torchvision.ops.nms(b, s, 0.2); b[k], s[k]",
        "k = torchvision.ops.batched_nms(b, s, c, 0.3); torch.cat([b[k], s[k].unsqueeze(1)], 1)",
        "m = s > 0.4; b[m][torchvision.ops.nms(b[m], s[m], 0.2)]",
    ):
        named = {"b": b, "s": s, "c": c} if "batched" in text else {"b": b, "s": s}
        t.sized(text, named, *[{name: x for name, x in others.items() if name in named} for others in sets], dynamic=tuple(named))
    x, r = t.rand(2, 8, 6, 7), regions(t, 4, 6, 7, 2)
    sets = [{"r": r[:n]} for n in (2, 3)]
    for call in ("roi_align(x, r, 0.5, 2, 2, 0, True)", "roi_align(x, r, 0.5, 2, 2, 2, False)", "roi_pool(x, r, 1.0, 2, 2)", "ps_roi_pool(x, r, 1.0, 2, 2)"):
        t.sized(f"{V}.{call}", {"x": x, "r": r}, *sets, dynamic=("r",))


FAMILIES = {"vision": (("f32", "f64"), fill), "detection": (("f32",), detectors)}
