import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Address, inNetworks } from './networks.js';

/** The range of all public IPv6 hosts (RFC 4291). */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/** The range for documentation of RFC 9637, which the library does not know. */
const DOCUMENTATION = ipaddr.IPv6.parseCIDR('3fff::/20');
/** The address at which Azure serves data for the machine itself only: metadata, certificates, health. */
const AZURE_PLATFORM = '168.63.129.16';
/**
 * Bytes 8 to 11 of an ISATAP address (RFC 5214 6.1), before its IPv4 address, with and without the bit of a global one.
 */
const ISATAP = /^0[02]005efe$/;
/** The NAT64 prefix of RFC 6052: IPv6 addresses that represent IPv4 ones. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether a host of the public Internet may have the address. False for a text that is not an address in its usual
 * form. Also false for addresses that may lead to a private one: tunnels, multicast, anycast of special services. An
 * IPv6 address that represents an IPv4 one (mapped, or by NAT64) is judged by that one.
 */
export function isPublicAddress(address: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return isPublicIPv4(ipaddr.IPv4.parse(address));
  if (!isIPv6(address) || address.includes('%')) return false;
  // The library reads `::1.1.1.1` as a mapped address.
  const parsed = ipaddr.IPv6.parse(new URL(`http://[${address}]`).hostname.slice(1, -1));
  if (parsed.isIPv4MappedAddress()) return isPublicIPv4(parsed.toIPv4Address());
  if (parsed.match(NAT64)) return isPublicIPv4(behindNat64(parsed));
  const isTunnel = ISATAP.test(Buffer.from(parsed.toByteArray().slice(8, 12)).toString('hex'));
  return parsed.range() === 'unicast' && parsed.match(GLOBAL_UNICAST) && !parsed.match(DOCUMENTATION) && !isTunnel;
}

const isPublicIPv4 = (address: ipaddr.IPv4): boolean =>
  address.range() === 'unicast' && address.toString() !== AZURE_PLATFORM;

/** Addresses to which this service may send requests: public ones, or any, and none of the refused networks (CIDRs). */
export interface AddressRules {
  readonly privateAddresses: boolean;
  readonly refusedNetworks: readonly string[];
}

/** Whether requests may go to an address, given as text. */
export function allowedAddresses({ privateAddresses, refusedNetworks }: AddressRules): (address: string) => boolean {
  const isRefused = inNetworks(refusedNetworks);
  return (address) =>
    (privateAddresses || isPublicAddress(address)) &&
    !(ipaddr.isValid(address) && reachedBy(ipaddr.process(address)).some(isRefused));
}

const LOOPBACK = { ipv4: ipaddr.parse('127.0.0.1'), ipv6: ipaddr.parse('::1') };

/** The addresses that a connection to one may reach: itself, and what it stands for. */
function reachedBy(address: Address): readonly Address[] {
  // Linux connects to this machine.
  if (address.range() === 'unspecified') return [address, LOOPBACK[address.kind()]];
  return address instanceof ipaddr.IPv6 && address.match(NAT64) ? [address, behindNat64(address)] : [address];
}

const behindNat64 = (address: ipaddr.IPv6): ipaddr.IPv4 => new ipaddr.IPv4(address.toByteArray().slice(-4));
