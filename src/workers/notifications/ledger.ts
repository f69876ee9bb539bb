/**
 * Who sends what to whom, claimed before it is sent: SMS and push providers know no idempotency keys. A record a telling; losing them loses no
 * message and repeats none, since what is not found here is looked up at the provider.
 */
import type { Records } from '../../ports/readStore.js';
import type { SendReply } from '../messages.js';
import { TroubleError } from '../trouble.js';

/** What is known of one telling. Personal: `to`. */
export interface Claim {
  readonly to: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The provider's answer; absent: it is being asked, or nobody knows what it answered. */
  readonly reply?: SendReply;
}

/** The ledger, by `tellingKey`. Everything throws UnavailableError when the records can't be reached. */
export interface Ledger {
  find(telling: string): Promise<Claim | undefined>;
  /**
   * Sends at most once: claims the telling, then runs `send`. What certainly sent nothing gives the claim up; an unknown outcome keeps it.
   * @returns what was answered, now or before. @throws TroubleError with an unknown outcome while another one holds the claim; whatever `send` throws.
   */
  once(telling: string, to: string, send: () => Promise<SendReply>, sentNothing: (error: unknown) => boolean): Promise<SendReply>;
  /** Notes what the provider tells by itself: that it has the message, where nobody knew; that it failed, whatever it had answered. */
  learn(telling: string, reply: SendReply): Promise<void>;
  /** Gives up a claim without an answer, made before `before` (milliseconds since the epoch). @returns whether nobody holds one now. */
  release(telling: string, before: number): Promise<boolean>;
  /** Notes that nobody had claimed this telling by `at` (milliseconds since the epoch): it is held back, perhaps for longer than claims are kept. */
  held(telling: string, at: number): Promise<void>;
  /** Whether nobody can have claimed this telling since `startedAt` (milliseconds since the epoch): there is no claim, and there would be one. */
  neverClaimed(telling: string, startedAt: number): Promise<boolean>;
}

const KEPT_MS = 48 * 3_600_000;
const SINCE_KEY = 'sendLedger';

/** The ledger in the records. `now`: milliseconds since the epoch. @throws UnavailableError */
export async function openLedger(records: Records, now: () => number): Promise<Ledger> {
  const keyOf = (telling: string): string => `send/${telling}`;
  const heldKeyOf = (telling: string): string => `sendHeld/${telling}`;
  /** Since when it has been kept: what was asked for later and isn't in it has never been begun. */
  await records.put(SINCE_KEY, now(), { expected: 0 });

  const find = async (telling: string): Promise<Claim | undefined> => (await records.get<Claim>(keyOf(telling)))?.value;

  return {
    find,

    async once(telling, to, send, sentNothing) {
      const key = keyOf(telling);
      const claim: Claim = { to, at: now() };
      const version = await records.put(key, claim, { expected: 0, expiresAt: now() + KEPT_MS });
      if (version === undefined) {
        const reply = (await find(telling))?.reply;
        if (reply !== undefined) return reply;
        throw new TroubleError('somebody has begun to send it and has not said what came of it', { outcomeUnknown: true });
      }
      let reply: SendReply;
      try {
        reply = await send();
      } catch (error) {
        // A claim that can't be given up only costs a look-up.
        if (sentNothing(error)) await records.delete(key, version).catch(() => false);
        throw error;
      }
      // The answer matters more than the note of it.
      await records.put(key, { ...claim, reply }, { expected: version, expiresAt: now() + KEPT_MS }).catch(() => undefined);
      return reply;
    },

    async learn(telling, reply) {
      for (;;) {
        const record = await records.get<Claim>(keyOf(telling));
        const known = record?.value.reply?.outcome;
        if (known === 'failed' || known === reply.outcome) return;
        const claim: Claim = { to: '', at: now(), ...record?.value, reply };
        if ((await records.put(keyOf(telling), claim, { expected: record?.version ?? 0, expiresAt: now() + KEPT_MS })) !== undefined) return;
      }
    },

    async release(telling, before) {
      const record = await records.get<Claim>(keyOf(telling));
      if (record === undefined) return true;
      if (record.value.reply !== undefined || record.value.at >= before) return false;
      return records.delete(keyOf(telling), record.version);
    },

    async held(telling, at) {
      await records.put(heldKeyOf(telling), at, { expiresAt: at + KEPT_MS });
    },

    async neverClaimed(telling, startedAt) {
      if ((await find(telling)) !== undefined) return false;
      const since = await records.get<number>(SINCE_KEY);
      // Lost with all else: from now on it is kept again.
      if (since === undefined) await records.put(SINCE_KEY, now(), { expected: 0 });
      if (since === undefined || since.value >= startedAt) return false;
      const unclaimedAt = now() - startedAt < KEPT_MS ? startedAt : (await records.get<number>(heldKeyOf(telling)))?.value;
      return unclaimedAt !== undefined && now() - unclaimedAt < KEPT_MS;
    },
  };
}
