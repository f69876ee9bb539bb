/**
 * URLs that webhooks may be sent to (docs/api/webhooks.md#addresses). The addresses of a host name are checked
 * when it is resolved.
 */
import { type AddressRules, allowedAddresses } from '../lib/publicAddress.js';

export const LONGEST_URL = 2_048;

/**
 * Describes a URL's fault in a phrase that follows the field's name; `undefined`: there is no fault. Where private
 * addresses are allowed, for development, `http://` is allowed as well.
 */
export function webhookUrlFault(text: string, rules: AddressRules): string | undefined {
  if (text.length > LONGEST_URL) return `: at most ${LONGEST_URL} characters`;
  // Refuses characters that a URL parser would skip or correct.
  if (!/^[!-[\]-~]+$/.test(text) || !URL.canParse(text)) return 'must be an address, in ASCII';
  // A URL parser reads `https:host` and `https:/host` as `https://host`, but not every other reader does.
  const schemes = rules.privateAddresses ? ['https://', 'http://'] : ['https://'];
  if (!schemes.some((scheme) => text.toLowerCase().startsWith(scheme) && text.charAt(scheme.length) !== '/'))
    return `must begin with ${schemes.join(' or ')} and a host`;
  if (/^[^/]*\/\/[^/?#]*@/.test(text)) return 'must not have a user or password';
  if (text.includes('#')) return 'must not have a fragment';
  const address = literalAddress(new URL(text).hostname);
  return address === undefined || allowedAddresses(rules)(address) ? undefined : 'must be a public address';
}

/**
 * IP address of a URL's host, without the brackets of IPv6; `undefined`: the host is a name. The URL parser has already
 * rewritten unusual forms of IPv4 as four decimals.
 */
function literalAddress(hostname: string): string | undefined {
  if (hostname.startsWith('[')) return hostname.slice(1, -1);
  return /^\d+\.\d+\.\d+\.\d+$/.test(hostname) ? hostname : undefined;
}
