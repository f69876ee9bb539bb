import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/** RFC 4291: what else there is, is no host on the Internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/** RFC 9637, which the library does not know. */
const DOCUMENTATION = ipaddr.IPv6.parseCIDR('3fff::/20');
/** RFC 6052. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether a host of the public Internet may have the address. False for a text that is no address in its usual form,
 * and for what may lead to a private one: tunnels, multicast, anycast of special services. Of an IPv6 address that
 * stands for an IPv4 one (mapped, or by NAT64) it is that one which counts.
 */
export function isPublicAddress(address: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return isPublicIPv4(ipaddr.IPv4.parse(address));
  if (!isIPv6(address) || address.includes('%')) return false;
  // The library reads `::1.1.1.1` as a mapped address.
  const parsed = ipaddr.IPv6.parse(new URL(`http://[${address}]`).hostname.slice(1, -1));
  if (parsed.isIPv4MappedAddress()) return isPublicIPv4(parsed.toIPv4Address());
  if (parsed.match(NAT64)) return isPublicIPv4(new ipaddr.IPv4(parsed.toByteArray().slice(-4)));
  return parsed.range() === 'unicast' && parsed.match(GLOBAL_UNICAST) && !parsed.match(DOCUMENTATION);
}

const isPublicIPv4 = (address: ipaddr.IPv4): boolean => address.range() === 'unicast';
