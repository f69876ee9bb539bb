/** Gifts that are named by their shortcodes. */
import { isShortcode, shortcodesUnder } from '../domain/giftIds.js';
import { type KeyedHash, keyedHash } from '../domain/keyedHash.js';
import { refuseUnlessKeysFit } from '../service/keysCheck.js';
import { findHashKey } from '../service/keys.js';
import type { OpenedLog } from './engines.js';
import { CommandFailure } from './terminal.js';

/** @throws CommandFailure without the HASH_KEY, EngineError with another; UnavailableError */
export async function hashOf(opened: OpenedLog, what: string): Promise<KeyedHash> {
  const key = findHashKey(opened.config);
  if (key === undefined)
    throw new CommandFailure(`${what}: put the installation's hash.key into DATA_DIR, or set HASH_KEY`);
  await refuseUnlessKeysFit(opened, () => key);
  return keyedHash(key);
}

/**
 * The gifts' ids in place of their shortcodes; any other identifiers as they are. So no access record has a shortcode.
 * The key is checked once for all of them. @throws as `hashOf`
 */
export async function giftsNamed(opened: OpenedLog, identifiers: readonly string[]): Promise<readonly string[]> {
  if (!identifiers.some(isShortcode)) return identifiers;
  const hash = await hashOf(opened, "give the gift's id, or the key that shortcodes are made with");
  const shortcodes = shortcodesUnder(hash);
  return identifiers.map((one) => (isShortcode(one) ? (shortcodes.giftIdOf(one) ?? one) : one));
}

/** As `giftsNamed`, for one gift. */
export async function giftNamed(opened: OpenedLog, identifier: string): Promise<string> {
  const [named = identifier] = await giftsNamed(opened, [identifier]);
  return named;
}
