import { isIPv6 } from "node:net";
import fc from "fast-check";
import { expect, it } from "vitest";
import { networkOf, withoutPorts } from "../../../src/platform/http/middleware/request-headers.ts";

it.each([
  ["203.0.113.7:51234", "203.0.113.7"],
  ["[2001:db8::1]:51234", "2001:db8::1"],
  ["[2001:DB8::1]", "2001:DB8::1"],
  ["[::ffff:203.0.113.7]:1", "::ffff:203.0.113.7"],
  ["203.0.113.7:51234, [2001:db8::1]:443,10.0.0.1 , 10.0.0.2:80 ", "203.0.113.7,2001:db8::1,10.0.0.1 ,10.0.0.2"],
])("withoutPorts removes the ports from forwarded addresses: %s", (forwarded, addresses) => {
  expect(withoutPorts(forwarded)).toBe(addresses);
});

it("withoutPorts leaves a list of addresses unchanged if an entry is no IP address with or without port", () => {
  const forms = [
    ..." , 203.0.113.7 2001:db8::1 ::1:443 unknown 203.0.113.7: 203.0.113.7:x 203.0.113.7:443:443 203.0.113:443".split(
      " ",
    ),
    ..."user@203.0.113.7:443 203.0.113.7:443/path [203.0.113.7]:443 [203.0.113.7:443]:443 [2001:db8::1".split(" "),
    ..."[[2001:db8::1]]:443 [fe80::1%eth0]:443 0x7f.0.0.1:443".split(" "),
    ...["203.0.113.7:443\t", `[${"1:".repeat(8_000)}`, `${"1.".repeat(8_000)}:1x`, " ".repeat(16_000)],
  ];
  for (const forwarded of forms) expect(withoutPorts(forwarded)).toBe(forwarded);
});

it("withoutPorts keeps the number of addresses, and a second call changes nothing", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."0123456789abf.:[], x%"), maxLength: 60 }), (text) => {
      expect(withoutPorts(withoutPorts(text))).toBe(withoutPorts(text));
      expect(withoutPorts(text).split(",")).toHaveLength(text.split(",").length);
    }),
  );
});

it.each([
  ["203.0.113.7", "203.0.113.7"],
  ["::ffff:203.0.113.7", "203.0.113.7"],
  ["::FFFF:CB00:7107", "203.0.113.7"],
  ["0:0:0:0:0:ffff:cb00:7107", "203.0.113.7"],
  ["::ffff:0.0.0.1", "0.0.0.1"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:0DB8:0000:0000:FFFF:FFFF:FFFF:FFFF", "2001:db8:0:0::/64"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:3:4:5::", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["1::", "1:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::203.0.113.7", "0:0:0:0::/64"],
])("the caller network of the address %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it("all invalid addresses have the same caller network", () => {
  const texts = "unknown _hidden 203.0.113.7:443 [2001:db8::1] 203.0.113 0203.0.113.7 2001:db8::1/64".split(" ");
  for (const text of [...texts, undefined, "", "203.0.113.7, 203.0.113.8", "x".repeat(10_000)]) {
    expect(networkOf(text), text).toBe("none");
  }
});

it("all addresses of a /64 have the same caller network, and other addresses have another network", () => {
  const group = fc.integer({ min: 1, max: 0xffff });
  const groups = fc.array(group, { minLength: 4, maxLength: 4 });
  const text = (parts: number[]) => parts.map((part) => part.toString(16)).join(":");
  fc.assert(
    fc.property(groups, groups, groups, groups, (network, host, otherHost, otherNetwork) => {
      const address = `${text(network)}:${text(host)}`;
      expect(isIPv6(address)).toBe(true);
      expect(networkOf(address)).toBe(`${text(network)}::/64`);
      expect(networkOf(`${text(network)}:${text(otherHost)}`)).toBe(networkOf(address));
      const elsewhere = networkOf(`${text(otherNetwork)}:${text(host)}`);
      expect(elsewhere === networkOf(address)).toBe(text(otherNetwork) === text(network));
    }),
  );
});

it("an IPv4 address has the same caller network in every IPv6 notation", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
      for (const spelling of [address, `::ffff:${address}`, `::ffff:${hex}`, `0:0:0:0:0:ffff:${hex}`]) {
        expect(networkOf(spelling)).toBe(address);
      }
    }),
  );
});
