/**
 * Hashes of the present cost for users whose imported hash has another one: made by their first right login, and
 * checked in its place from then on (docs/decisions.md#usernames-and-passwords). They are records, and no events: no
 * password has changed, and no session ends.
 */
import type { KeyedHash } from '../../domain/keyedHash.js';
import { LOGIN_HASHES } from '../../domain/recordKeys.js';
import { costOf, hashPassword, PRESENT_COST } from '../../lib/passwordHash.js';
import type { Records } from '../../ports/readStore.js';
import type { UserDocument } from '../../projections/accounts.js';

/** After which the next login makes another one, ms. */
const LIFE_MS = 90 * 86_400_000;

interface LoginHash {
  /** Keyed hash of the imported one. */
  readonly of: string;
  readonly hash: string;
}

export interface LoginHashes {
  /** What to check a login against. For an unknown or inactive user: `undefined`, after the same look-up. */
  of(usernameHash: string, user: UserDocument | undefined): Promise<string | undefined>;
  /** After a right login. `checked`: what `of` gave. */
  renew(usernameHash: string, user: UserDocument, checked: string, password: string): Promise<void>;
}

export function loginHashes(records: Records, hash: KeyedHash, now: () => number): LoginHashes {
  const ofUser = ({ id, password_hash }: UserDocument): string => hash('secret', JSON.stringify([id, password_hash]));
  return {
    async of(usernameHash, user) {
      const record = await records.get<LoginHash>(LOGIN_HASHES + usernameHash);
      if (user?.active !== true) return undefined;
      return record?.value.of === ofUser(user) ? record.value.hash : user.password_hash;
    },
    async renew(usernameHash, user, checked, password) {
      if (costOf(checked) === PRESENT_COST) return;
      const renewed: LoginHash = { of: ofUser(user), hash: await hashPassword(password) };
      await records.put(LOGIN_HASHES + usernameHash, renewed, { expiresAt: now() + LIFE_MS });
    },
  };
}
