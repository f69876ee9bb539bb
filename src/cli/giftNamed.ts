/** Gifts that are named by their shortcodes. */
import { isShortcode, shortcodesUnder } from '../domain/giftIds.js';
import { keyedHash } from '../domain/keyedHash.js';
import { refuseUnlessKeysFit } from '../service/keysCheck.js';
import { findHashKey } from '../service/keys.js';
import type { OpenedLog } from './engines.js';
import { CommandFailure } from './terminal.js';

/**
 * The gift's id in place of its shortcode; any other identifier as it is. So no access record has a shortcode.
 * @throws CommandFailure without the HASH_KEY, EngineError with another; UnavailableError
 */
export async function giftNamed(opened: OpenedLog, identifier: string): Promise<string> {
  if (!isShortcode(identifier)) return identifier;
  const key = findHashKey(opened.config);
  if (key === undefined)
    throw new CommandFailure(
      "shortcodes are made with the HASH_KEY: put the installation's hash.key into DATA_DIR, set HASH_KEY, or give the gift's id",
    );
  await refuseUnlessKeysFit(opened, () => key);
  return shortcodesUnder(keyedHash(key)).giftIdOf(identifier) ?? identifier;
}
