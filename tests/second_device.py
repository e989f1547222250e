"""A device that is not the CPU, for tests where there is no GPU: PyTorch's place for other backends, with the CPU's kernels.

A tensor there wraps one of the CPU's. As on a GPU, an operation on tensors of both devices fails,
and so do ``.numpy()`` and a generator of the CPU. What it cannot show: other rounding, memory that
is full, and what kernels of CUDA alone refuse.
"""

import torch
from torch.utils import _pytree as trees
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "second"
aten = torch.ops.aten
# As on a GPU: a copy goes from device to device, and an index may lie on the CPU.
MIXED = {aten._to_copy.default, aten.copy_.default, aten._copy_from.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
INDEXED |= {aten._index_put_impl_.default}
FACTORIES = (
    "empty.memory_format empty_strided arange arange.start arange.start_step zeros ones full"
)
_library = torch.library.Library("aten", "IMPL")


class There(torch.Tensor):
    """A tensor on the second device."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor, *_, **__):
        device = torch.device(NAME, 0)
        # A view in inference mode of a tensor from outside is none of inference mode.
        with torch.inference_mode(False):
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=device
            )
        made.held = inner
        return made

    def __repr__(self):
        return f"{self.held!r} there"

    def tolist(self):  # this and the next a GPU's tensor has, too
        return self.held.tolist()

    def untyped_storage(self):
        return self.held.untyped_storage()

    def data_ptr(self):
        return self.held.data_ptr()

    def __deepcopy__(self, memo):
        copied = There(self.held.clone())
        if isinstance(self, torch.nn.Parameter):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __format__(self, form):
        return format(self.held, form)

    @classmethod
    def __torch_dispatch__(cls, operation, types, inputs=(), named=None):
        return compute(operation, inputs, named or {})


def compute(operation, inputs, named):
    """The operation on the CPU's tensors inside; refused where a GPU would refuse."""
    for each in trees.tree_leaves((inputs, named)):
        here = isinstance(each, torch.Tensor) and not isinstance(each, There) and each.dim()
        mixed = operation in MIXED or (operation in INDEXED and isinstance(inputs[0], There))
        if here and not mixed:
            raise RuntimeError(f"{operation}: all tensors have to be on {NAME}:0, and one is not")
        if isinstance(each, torch.Generator):
            raise RuntimeError(f"{operation}: a generator of {NAME} is wanted")
    wrapped = {}

    def inside(each):
        if isinstance(each, There):
            wrapped[id(each.held)] = each
            return each.held
        return torch.device("cpu") if isinstance(each, torch.device) else each

    target = named.get("device")
    inner, keywords = trees.tree_map(inside, (inputs, named))
    found = operation(*inner, **keywords)
    if target is not None and torch.device(target).type == "cpu":
        return found

    def outside(each):
        if not isinstance(each, torch.Tensor):
            return each
        known = wrapped.get(id(each))  # changed in place
        return known if known is not None and known.shape == each.shape else There(each)

    return trees.tree_map(outside, found)


def register() -> None:
    """Make the device known to PyTorch; once in a process."""
    _setup_privateuseone_for_python_backend(NAME)

    def copy(source, target, non_blocking=False):
        getattr(target, "held", target).copy_(getattr(source, "held", source))
        return target

    _library.impl("_copy_from", copy, "PrivateUse1")
    for name in FACTORIES.split():
        operation, _, overload = name.partition(".")
        made = _made_there(getattr(getattr(aten, operation), overload or "default"))
        _library.impl(name, made, "PrivateUse1")


def _made_there(operation):
    def make(*inputs, device=None, pin_memory=None, **named):
        return There(operation(*inputs, device="cpu", **named))

    return make
