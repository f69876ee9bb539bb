/**
 * Password hashes of the present cost, for users whose imported hash has another cost. The first right login makes one,
 * which is checked in place of the imported hash from then on (docs/decisions/hashes-renewed-at-login.md). They are
 * records and not events: no password has changed, and no session ends.
 */
import type { KeyedHash } from '../../domain/keyedHash.js';
import { LOGIN_HASHES } from '../../domain/recordKeys.js';
import { costOf, hashPassword, PRESENT_COST } from '../../lib/passwordHash.js';
import type { Records } from '../../ports/readStore.js';
import type { UserDocument } from '../../projections/accounts.js';

/** Lifetime of such a hash, ms; the next login after it makes another one. */
const LIFE_MS = 90 * 86_400_000;

interface LoginHash {
  /** Keyed hash of the user's id and imported hash. */
  readonly of: string;
  /** Id of the user, by which an erasure finds the record: the username may be another user's by then. */
  readonly user: string;
  readonly hash: string;
}

export interface LoginHashes {
  /** The hash to check a login against. For an unknown or inactive user: `undefined`, after the same look-up. */
  of(usernameHash: string, user: UserDocument | undefined): Promise<string | undefined>;
  /** Called after a right login: stores a hash of the present cost. `checked`: the hash that `of` returned. */
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
      const renewed: LoginHash = { of: ofUser(user), user: user.id, hash: await hashPassword(password) };
      await records.put(LOGIN_HASHES + usernameHash, renewed, { expiresAt: now() + LIFE_MS });
    },
  };
}
