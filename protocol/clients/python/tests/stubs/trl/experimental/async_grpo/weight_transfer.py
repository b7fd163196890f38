"""TRL's WeightTransferClient without the transfer: it says what it was asked for."""

from typing import Any


class WeightTransferClient:
    def __init__(
        self, vllm_server_url: str, server_timeout: float, weight_update_info: dict[str, Any]
    ):
        assert set(weight_update_info) == {
            "names",
            "dtype_names",
            "shapes",
            "packed",
            "is_checkpoint_format",
        }
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
