/**
 * The hash of a purchase's body in its event. A body may hold numbers, which could be guessed from a hash under
 * HASH_KEY alone: it is keyed by the purchase's data key, which ends with an erasure (docs/personal-data.md#erasure).
 */
import { keyedHash } from '../domain/keyedHash.js';
import { purchaseSubject } from '../domain/personalFields.js';
import type { GiftsPurchased } from '../domain/purchase/events.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Subjects } from '../runtime/personal/index.js';

/** @param purchaseId id of the purchase's subject. @throws UnavailableError, also where it was erased a moment ago */
export async function purchaseBodyHash(
  subjects: Pick<Subjects, 'secrets'>,
  purchaseId: string,
  bodyHash: string,
): Promise<string> {
  const key = (await subjects.secrets([purchaseId])).get(purchaseId);
  if (key === undefined) throw new UnavailableError('the purchase is being erased');
  return keyedHash(key)('body', bodyHash);
}

/**
 * Whether a repeated request has the body of the purchase. Once the purchase's data key is erased that can't be known,
 * and the body counts as the same.
 * @throws UnavailableError
 */
export async function hasBodyOf(
  subjects: Pick<Subjects, 'find' | 'secrets'>,
  { transaction_id, message, receivers }: GiftsPurchased['data'],
  stored: string | undefined,
  bodyHash: string | undefined,
): Promise<boolean> {
  const personal = message !== '' || receivers.some(({ phone_id }) => phone_id !== undefined);
  if (!personal || stored === undefined || bodyHash === undefined) return stored === bodyHash;
  const [id] = await subjects.find([purchaseSubject(transaction_id)]);
  const key = id === undefined ? undefined : (await subjects.secrets([id])).get(id);
  return key === undefined || keyedHash(key)('body', bodyHash) === stored;
}
