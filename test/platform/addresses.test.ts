import { expect, it } from "vitest";
import { isPublicAddress } from "../../src/platform/addresses.ts";

it.each([
  "8.8.8.8",
  "2606:4700::1111",
  // IPv4-mapped, NAT64, 6to4.
  ...["::ffff:8.8.8.8", "::ffff:808:808", "64:ff9b::8.8.8.8", "64:FF9B::808:808", "2002:808:808::1"],
  // NAT64 with a prefix of 48, 56, 64 and 96 bits.
  ...["64:ff9b:1:808:8:800::", "64:ff9b:1:8:8:808::", "64:ff9b:1:0:8:808:800:0", "64:ff9b:1::808:808"],
  "64:ff9b:1:fffe::808:808",
])("isPublicAddress accepts public addresses, and IPv6 forms of public IPv4 addresses: %s", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

const NOT_PUBLIC = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "168.63.129.16", "100.64.0.1", "192.0.2.1", "0.0.0.0"];
const GROUPS = NOT_PUBLIC.map((address) => {
  const [a = "", b = "", c = "", d = ""] = address.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0"));
  return { a, b, c, d };
});

it.each([
  ...NOT_PUBLIC,
  ...NOT_PUBLIC.flatMap((address) => [`::ffff:${address}`, `64:ff9b::${address}`, `64:ff9b:1::${address}`]),
  ...GROUPS.map(({ a, b, c, d }) => `2002:${a}${b}:${c}${d}::808:808`),
  // The place of the IPv4 address depends on the length of the NAT64 prefix. Other bytes have no effect.
  ...GROUPS.slice(0, -1).flatMap(({ a, b, c, d }) => [
    `64:ff9b:1:${a}${b}:00${c}:${d}00:808:808`,
    `64:ff9b:1:08${a}:00${b}:${c}${d}:808:808`,
    `64:ff9b:1:808:00${a}:${b}${c}:${d}08:808`,
  ]),
  // Addresses that only look as if they contained an IPv4 address.
  ...["::8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b:2::8.8.8.8", "2001::808:808", "::1", "::", "fe80::1%eth0", "fd00::1"],
  ...["2001:db8::1", "ff02::1", "localhost", "", "8.8.8.8:80", "[::ffff:8.8.8.8]", "8.8.8", "64:ff9b::8.8.8.8%eth0"],
])("isPublicAddress refuses private addresses and texts that are no address: %s", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});
