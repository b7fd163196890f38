"""TRL's WeightTransferClient (1.9 and later) without the transfer: it tells what it was asked."""

from typing import Any


class VLLMClient:
    def __init__(self, base_url: str, timeout: float):
        self.base_url, self.timeout = base_url, timeout


class WeightTransferClient:
    def __init__(self, vllm_client: VLLMClient, weight_update_info: dict[str, Any]):
        assert isinstance(vllm_client, VLLMClient)
        assert {"names", "dtype_names", "shapes"} <= set(weight_update_info)
        self.calls: list[str] = []

    def init_weight_transfer(self) -> None:
        self.calls.append("init")

    def pause(self) -> None:
        self.calls.append("pause")

    def send_weights(self, iterator: Any) -> None:
        self.calls.append("send")

    def resume(self) -> None:
        self.calls.append("resume")

    def destroy(self) -> None:
        self.calls.append("destroy")
