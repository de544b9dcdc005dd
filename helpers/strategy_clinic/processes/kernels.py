"""A provisioner for environments that were set up before `strategy_clinic.forkserver.kernel` forked their kernels."""

from typing import Any

from jupyter_client.provisioning.local_provisioner import LocalProvisioner


class WarmProvisioner(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        module = "strategy_clinic.forkserver.kernel"
        cmd = [module if word == "ipykernel_launcher" else word for word in cmd]
        return await super().launch_kernel(cmd, **options)
