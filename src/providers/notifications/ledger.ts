/**
 * Who sends what to whom, claimed before it is sent: SMS and push providers know no idempotency keys. A record a
 * telling; losing them loses no message and repeats none, since what is not found here is looked up at the provider.
 */
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { Records } from '../../ports/readStore.js';
import type { SendReply } from '../../messages/notifications.js';
import { ProviderError } from '../providerErrors.js';

/** What is known of one telling. Personal: `to`. */
export interface Claim {
  readonly to: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Names this claim. Absent: made by what Twilio told, or before claims were named. */
  readonly by?: string;
  /**
   * Nothing was sent on it, and nobody holds it any more. It is not deleted: a deletion that the records carry out late
   * would take away the next claim.
   */
  readonly givenUp?: true;
  /** The provider's answer; absent: it is being asked, or nobody knows what it answered. */
  readonly reply?: SendReply;
}

/** The ledger, by `notificationKey`. Everything throws UnavailableError when the records can't be reached. */
export interface Ledger {
  /** A claim on which this process certainly sent nothing is given up by it. */
  find(telling: string): Promise<Claim | undefined>;
  /**
   * Sends at most once: claims the telling, then runs `send`. What certainly sent nothing gives the claim up; an
   * unknown outcome keeps it.
   * @returns what was answered, now or before. @throws ProviderError with an unknown outcome while another one holds the
   * claim; whatever `send` throws.
   */
  once(
    telling: string,
    to: string,
    send: () => Promise<SendReply>,
    sentNothing: (error: unknown) => boolean,
  ): Promise<SendReply>;
  /**
   * Notes what the provider tells by itself: that it has the message, where nobody knew; that it failed, whatever it
   * had answered.
   */
  learn(telling: string, reply: SendReply): Promise<void>;
  /**
   * Gives up a claim without an answer, made before `before` (milliseconds since the epoch). @returns whether nobody
   * holds one now.
   */
  release(telling: string, before: number): Promise<boolean>;
  /**
   * Notes that nobody had claimed this telling by `at` (milliseconds since the epoch): it is held back, perhaps for
   * longer than claims are kept.
   */
  held(telling: string, at: number): Promise<void>;
  /**
   * Whether nobody can have claimed this telling since `startedAt` (milliseconds since the epoch): there is no claim,
   * and there would be one.
   */
  neverClaimed(telling: string, startedAt: number): Promise<boolean>;
}

const KEPT_MS = 48 * 3_600_000;
const SINCE_KEY = 'sendLedger';
/** Claims without a message that a process keeps in mind, while the records do not answer. */
const REMEMBERED = 10_000;

/** The ledger in the records. `now`: milliseconds since the epoch. @throws UnavailableError */
export async function openLedger(records: Records, now: () => number, logger: Logger): Promise<Ledger> {
  const keyOf = (telling: string): string => `send/${telling}`;
  const heldKeyOf = (telling: string): string => `sendHeld/${telling}`;
  /** Since when it has been kept: what was asked for later and isn't in it has never been begun. */
  await records.put(SINCE_KEY, now(), { expected: 0 });

  /** Claims that may stand in the records and on which nothing was sent, by telling: only we know. */
  const unsent = new LRUCache<string, string>({ max: REMEMBERED });

  const find = async (telling: string): Promise<Claim | undefined> => {
    const record = await records.get<Claim>(keyOf(telling));
    if (record === undefined || record.value.reply !== undefined) return record?.value;
    if (record.value.givenUp === true) return undefined;
    if (record.value.by === undefined || record.value.by !== unsent.get(telling)) return record.value;
    return (await giveUp(telling, record.value, record.version)) === undefined ? find(telling) : undefined;
  };

  const giveUp = (telling: string, claim: Claim, version: number): Promise<number | undefined> =>
    records.put(keyOf(telling), { ...claim, givenUp: true }, { expected: version, expiresAt: now() + KEPT_MS });

  /** @returns its version; `undefined`: another one stands there */
  const make = async (telling: string, claim: Claim): Promise<number | undefined> => {
    const expiresAt = now() + KEPT_MS;
    const version = await records.put(keyOf(telling), claim, { expected: 0, expiresAt });
    if (version !== undefined) return version;
    const record = await records.get<Claim>(keyOf(telling));
    if (record?.value.givenUp !== true || record.value.reply !== undefined) return undefined;
    return records.put(keyOf(telling), claim, { expected: record.version, expiresAt });
  };

  return {
    find,

    async once(telling, to, send, sentNothing) {
      const key = keyOf(telling);
      const by = randomUUID();
      const claim: Claim = { to, at: now(), by };
      const version = await make(telling, claim).catch((error: unknown) => {
        unsent.set(telling, by);
        throw error;
      });
      if (version === undefined) {
        const reply = (await find(telling))?.reply;
        if (reply !== undefined) return reply;
        throw new ProviderError('somebody has begun to send it and has not said what came of it', {
          outcomeUnknown: true,
        });
      }
      let reply: SendReply;
      try {
        reply = await send();
      } catch (error) {
        if (sentNothing(error)) await giveUp(telling, claim, version).catch(() => void unsent.set(telling, by));
        throw error;
      }
      // The answer matters more than the note of it: without one, who asks again looks it up at the provider.
      try {
        const noted = await records.put(key, { ...claim, reply }, { expected: version, expiresAt: now() + KEPT_MS });
        // The provider's own word may have come before.
        if (noted === undefined && (await records.get<Claim>(key))?.value.reply === undefined)
          logger.warn({ telling }, 'what came of a message was not noted: another claim stands there');
      } catch (error) {
        logger.warn({ err: error, telling }, 'what came of a message could not be noted');
      }
      return reply;
    },

    async learn(telling, reply) {
      for (;;) {
        const record = await records.get<Claim>(keyOf(telling));
        const known = record?.value.reply?.outcome;
        if (known === 'failed' || known === reply.outcome) return;
        const claim: Claim = { to: '', at: now(), ...record?.value, reply };
        if (
          (await records.put(keyOf(telling), claim, { expected: record?.version ?? 0, expiresAt: now() + KEPT_MS })) !==
          undefined
        )
          return;
      }
    },

    async release(telling, before) {
      const record = await records.get<Claim>(keyOf(telling));
      if (record === undefined) return true;
      if (record.value.givenUp === true && record.value.reply === undefined) return true;
      if (record.value.reply !== undefined || record.value.at >= before) return false;
      return (await giveUp(telling, record.value, record.version)) !== undefined;
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
      const unclaimedAt =
        now() - startedAt < KEPT_MS ? startedAt : (await records.get<number>(heldKeyOf(telling)))?.value;
      return unclaimedAt !== undefined && now() - unclaimedAt < KEPT_MS;
    },
  };
}
