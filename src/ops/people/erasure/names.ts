import type { User } from '../../../domain/account.js';
import { accountStream } from '../../../domain/account.js';
import { normaliseUsername } from '../../../domain/precis.js';
import type { EventStore } from '../../../ports/eventStore.js';

/** All names by which a user was ever found: usernames normalised, numbers in E.164. */
export interface Names {
  readonly usernames: readonly string[];
  readonly numbers: readonly string[];
}

/** All names that a user ever had; `events` show the fields of fenced subjects too. @throws UnavailableError */
export async function namesOf(events: Pick<EventStore, 'read'>, userId: string): Promise<Names> {
  const usernames = new Set<string>();
  const numbers = new Set<string>();
  for (const { data } of await events.read(accountStream('user', userId))) {
    const { username = '', phone_number = null } = data as Partial<User>;
    if (username !== '') usernames.add(normaliseUsername(username));
    if (phone_number !== null) numbers.add(phone_number);
  }
  return { usernames: [...usernames], numbers: [...numbers] };
}
