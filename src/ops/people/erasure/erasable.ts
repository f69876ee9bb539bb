import type { User } from '../../../domain/account.js';
import { holderOf, reservationAggregate } from '../../../domain/account.js';
import { fold } from '../../../domain/decider.js';
import type { Entry } from '../../../domain/entry.js';
import type { Person } from '../../../domain/erasure.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Caller, RecordedEvent } from '../../../ports/eventStore.js';
import type { KeyStore } from '../../../ports/keyStore.js';
import { userAggregate } from './retire.js';

/**
 * Checks who may be erased by whom (docs/personal-data.md#who-may-be-erased). `history` is the person's stream.
 * @throws Refusal `person_not_found`, `another_user_required`, `erasure_of_staff`, `number_of_user`; UnavailableError
 */
export async function refuseUnlessErasable(
  keys: Pick<KeyStore, 'byId'>,
  person: Person,
  history: readonly RecordedEvent[],
  by: Caller,
): Promise<void> {
  if (person.kind === 'user') {
    const user = fold(userAggregate, history);
    if (user.status === 'none') throw new Refusal('person_not_found');
    if (by.user === person.userId) throw new Refusal('another_user_required');
    if (actsForOthers(user)) throw new Refusal('erasure_of_staff');
    return;
  }
  if (holderOf(fold(reservationAggregate, history)) !== undefined) throw new Refusal('number_of_user');
  if (!(await keys.byId([person.phoneId])).has(person.phoneId)) throw new Refusal('person_not_found');
}

/** Whether the user is staff, or a user of a merchant, and no import has retired them. */
function actsForOthers(user: Entry<User>): boolean {
  if (user.status !== 'live' || !user.value.active) return false;
  // Users of the first releases have neither.
  const { roles = [], merchant_id = null } = user.value as Partial<User>;
  return roles.length > 0 || merchant_id !== null;
}
