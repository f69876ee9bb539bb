/** The master keys, under which the secrets of the key store are wrapped. */
import { createHash, hkdfSync } from 'node:crypto';
import { type Seal, sealUnder } from '../../lib/seal.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { unaltered } from './alteredData.js';

/** A secret is wrapped under a master key that was not given to this process: work fails until that key is given. */
export class UnknownMasterKeyError extends UnavailableError {
  constructor(message = 'this is not the key that the key store was made with') {
    super(message);
  }
}

export interface MasterKeys extends Pick<Seal, 'seal' | 'open'> {
  /** Whether a wrapped secret is wrapped under the first master key, the one that wraps new secrets. */
  isCurrent(sealed: string): boolean;
}

/**
 * The first key wraps, all unwrap. Keys are derived from the given texts by HKDF-SHA-256 (RFC 5869).
 * `open` throws UnknownMasterKeyError where none of them wrapped it, AlteredDataError where it was altered.
 */
export function masterKeys(texts: readonly string[]): MasterKeys {
  const keys = texts.map((text) => {
    const key = Buffer.from(hkdfSync('sha256', text, '', 'gift-commerce master key', 32));
    const name = createHash('sha256').update(key).digest('base64url').slice(0, 8);
    return { name, ...sealUnder(key) };
  });
  const [first] = keys;
  if (first === undefined) throw new Error('no master key');
  /** Tries every key on a secret with an unknown key name: only the name may have been altered. */
  const openUnnamed = (box: string, binding: string): Buffer => {
    for (const { open } of keys) {
      try {
        return open(box, binding);
      } catch {
        // This key did not wrap it: the next one is tried.
      }
    }
    throw new UnknownMasterKeyError();
  };
  const isOf = (sealed: string, { name }: { readonly name: string }): boolean => sealed.startsWith(`${name}.`);
  return {
    seal: (plain, binding) => `${first.name}.${first.seal(plain, binding)}`,
    open(sealed, binding) {
      const box = sealed.slice(first.name.length + 1);
      const key = keys.find((one) => isOf(sealed, one));
      if (key === undefined) return openUnnamed(box, binding);
      return unaltered(
        () => `row ${binding} of the key store`,
        () => key.open(box, binding),
      );
    },
    isCurrent: (sealed) => isOf(sealed, first),
  };
}
