/** The addresses that a webhook may go to (docs/api/webhooks.md#addresses). */
import { lookup as systemLookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { type AddressRules, allowedAddresses, isPublicAddress } from '../lib/publicAddress.js';

/** `timeout`: milliseconds before the next name server is queried; `tries`: rounds through all name servers. */
const RESOLVER = { timeout: 2_000, tries: 2 };

/** All addresses of a host name; empty where it has none. @throws UnresolvedNameError, or an error of the system */
type Resolve = (name: string) => Promise<readonly string[]>;

/** Which addresses a delivery may connect to, and how host names are resolved. */
export interface AddressPolicy {
  readonly resolve: Resolve;
  isAllowed(address: string): boolean;
}

/** The message is shown to the endpoint's owner and names no address: it may be one within our own network. */
export class AddressRefusedError extends Error {
  override readonly name = 'AddressRefusedError';
}

/** No name server has answered: the receiver's or our own name servers fail, or the network between them. */
export class UnresolvedNameError extends Error {
  override readonly name = 'UnresolvedNameError';
}

/**
 * Resolves a host once and checks every address. The caller connects to these: a second look-up may give others.
 * @param host host of a URL: a name or an address; an IPv6 address in brackets
 * @throws AddressRefusedError where any address is not allowed, or there is none; what `resolve` throws
 */
export async function checkedAddresses(
  { resolve, isAllowed }: AddressPolicy,
  host: string,
): Promise<readonly string[]> {
  const name = host.replace(/^\[|\]$/g, '');
  const addresses = isIP(name) === 0 ? await resolve(name) : [name];
  if (addresses.length === 0) throw new AddressRefusedError('its name has no address');
  if (!addresses.every(isAllowed)) throw new AddressRefusedError('its address is not public');
  return addresses;
}

/** The policy that the rules describe. Unless private addresses are allowed, names are resolved by DNS only. */
export function addressPolicy(rules: AddressRules): AddressPolicy {
  const isAllowed = allowedAddresses(rules);
  return rules.privateAddresses ? anyAddresses(isAllowed) : publicAddresses(undefined, isAllowed);
}

/** Resolves by DNS only: no name known only to this machine or its network, and no thread blocked by a name server. */
export function publicAddresses(
  openResolver: () => Readonly<Record<'resolve4' | 'resolve6', Resolve>> = () => new Resolver(RESOLVER),
  isAllowed: AddressPolicy['isAllowed'] = isPublicAddress,
): AddressPolicy {
  let resolver = openResolver();
  return {
    isAllowed,
    async resolve(name) {
      const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      const addresses = found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      const isUnknown = found.some((answer) => answer.status === 'rejected' && !isAnswer(answer.reason));
      if (addresses.length === 0 && isUnknown) {
        // A resolver knows the name servers that the machine had when it was opened.
        resolver = openResolver();
        throw new UnresolvedNameError('its name can not be resolved');
      }
      return addresses;
    },
  };
}

/** Whether the error is a name server's answer: no such name, no such address, or an invalid name. */
const isAnswer = (reason: unknown): boolean =>
  ['ENOTFOUND', 'ENODATA', 'EBADNAME'].includes((reason as NodeJS.ErrnoException).code ?? '');

/** For development: names are resolved by the operating system, hosts file included. */
export function anyAddresses(isAllowed: AddressPolicy['isAllowed'] = () => true): AddressPolicy {
  return {
    isAllowed,
    resolve: async (name) => (await systemLookup(name, { all: true })).map(({ address }) => address),
  };
}
