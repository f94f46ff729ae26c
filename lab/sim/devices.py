"""Step times predicted from data sheets: nobody ran these."""

from dataclasses import dataclass

from lab.sim.cost_model import Roofline


@dataclass(frozen=True)
class Device:
    """What the maker's data sheet says: memory in bytes and bytes/s, dense 16-bit tensor operations per second."""

    name: str
    memory_bytes: float
    bytes_per_s: float
    flops: float
    source: str


@dataclass(frozen=True)
class ModelShape:
    """What a step's time depends on: parameters, KV bytes of a token over all layers, bytes of a parameter."""

    name: str
    num_params: float
    kv_bytes_per_token: int
    itemsize: int = 2


DEVICES = {
    device.name: device
    for device in (
        Device("T4", 16e9, 320e9, 65e12, "NVIDIA T4 datasheet, 2019: FP16"),
        Device("L4", 24e9, 300e9, 121e12, "NVIDIA L4 datasheet, 2023: BF16, half of that with sparsity"),
        Device("A100", 80e9, 2039e9, 312e12, "NVIDIA A100 80GB SXM datasheet, 2021: BF16"),
        Device("H100", 80e9, 3350e9, 989e12, "NVIDIA H100 SXM datasheet, 2023: BF16, half of that with sparsity"),
        Device("H200", 141e9, 4800e9, 989e12, "NVIDIA H200 SXM datasheet, 2024: BF16, half of that with sparsity"),
        Device("RTX 4090", 24e9, 1008e9, 165.2e12, "NVIDIA Ada architecture whitepaper, 2022: FP16, FP32 accumulate"),
    )
}
LLAMA_3_1_8B = ModelShape("Llama-3.1-8B", 8.03e9, 2 * 32 * 8 * 128 * 2)  # K and V, layers, KV heads, head size, bytes


def predict(device: Device, model: ModelShape) -> Roofline:
    """The roofline of a model on a device. A prediction: no kernel reaches a data sheet."""
    return Roofline(
        step_s=model.num_params * model.itemsize / device.bytes_per_s,
        token_s=2 * model.num_params / device.flops,
        context_s=model.kv_bytes_per_token / device.bytes_per_s,
    )
