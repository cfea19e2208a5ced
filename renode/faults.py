# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821, UP031
# Renode answers an access outside every memory with 0 and a line in its log, where a board faults: an image or a stack
# that is too large would go unnoticed. The core's MPU, which the firmware does not use, makes such an access a fault.
# Renode's own Python is 2.7.


def mc_fault_outside_memory():
    """Below 0x40000000, where code and RAM are, nothing but the machine's memories may be accessed."""
    sysbus = self.Machine["sysbus"]
    cpu = self.Machine["sysbus.cpu"]
    regions = [
        (0, 0x40000000, 0)
    ]  # address, bytes, access permissions of the MPU; the last that fits an address wins
    for entry in sysbus.GetRegisteredPeripherals():
        if entry.Peripheral.GetType().Name == "MappedMemory":
            at = entry.RegistrationPoint.Range.StartAddress
            end = entry.RegistrationPoint.Range.EndAddress + 1
            while at < end:
                # The MPU wants powers of two, at multiples of themselves.
                size = 1
                while at % (2 * size) == 0 and at + 2 * size <= end:
                    size *= 2
                regions.append((at, size, 3))
                at += size
    if len(regions) > cpu.NumberOfMPURegions:
        raise Exception("%d MPU regions are needed, the core has %d" % (len(regions), cpu.NumberOfMPURegions))
    for number, (address, size, access) in enumerate(regions):
        exponent = 0
        while 1 << exponent < size:
            exponent += 1
        cpu.MPURegionNumber = number
        cpu.MPURegionBaseAddress = address
        cpu.MPURegionAttributeAndSize = access << 24 | (exponent - 1) << 1 | 1
    cpu.MPUEnabled = True
