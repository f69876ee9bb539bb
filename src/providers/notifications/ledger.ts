/**
 * Claims of notifications, made before sending: SMS and push providers know no idempotency keys. Losing claims loses
 * and repeats no message, since an unclaimed one is looked up at the provider.
 */
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { SEND_CLAIMS } from '../../domain/recordKeys.js';
import type { Records } from '../../ports/readStore.js';
import type { SendReply } from '../../messages/notifications.js';
import { ProviderError } from '../providerErrors.js';

/** Personal: `to`. */
export interface Claim {
  /** Empty where the person was erased, and of push messages. */
  readonly to: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Absent: a callback of the provider made the claim. */
  readonly by?: string;
  /** Nothing was sent on it. Not deleted: a delayed deletion would remove the next claim. */
  readonly givenUp?: true;
  /** Absent: not known yet. */
  readonly reply?: SendReply;
}

/** By `notificationKey`. Everything throws UnavailableError when the records can't be reached. */
export interface Ledger {
  /** Gives up a claim on which this process certainly sent nothing. */
  find(key: string): Promise<Claim | undefined>;
  /**
   * Sends at most once: claims the notification, then runs `send`. A failure that certainly sent nothing gives the
   * claim up; an unknown outcome keeps it.
   * @returns the answer, now or before. @throws ProviderError with an unknown outcome while another process holds the
   * claim; whatever `send` throws.
   */
  once(
    key: string,
    to: string,
    send: () => Promise<SendReply>,
    sentNothing: (error: unknown) => boolean,
  ): Promise<SendReply>;
  /** A provider's callback: the message is taken, or it failed, whatever was answered before. */
  learn(key: string, reply: SendReply): Promise<void>;
  /** Gives up an unanswered claim made before `before` (ms since the epoch). @returns whether no claim is left */
  release(key: string, before: number): Promise<boolean>;
  /** There was no claim at `at` (ms since the epoch): a limit may hold it back longer than claims are kept. */
  held(key: string, at: number): Promise<void>;
  /** Whether there was certainly no claim since `startedAt` (ms since the epoch). */
  neverClaimed(key: string, startedAt: number): Promise<boolean>;
}

const KEPT_MS = 48 * 3_600_000;
const SINCE_KEY = 'sendLedger';
const REMEMBERED = 10_000;

/** `now`: milliseconds since the epoch. @throws UnavailableError */
export async function openLedger(records: Records, now: () => number, logger: Logger): Promise<Ledger> {
  const keyOf = (notification: string): string => SEND_CLAIMS + notification;
  const heldKeyOf = (notification: string): string => `sendHeld/${notification}`;
  // A later request without a claim was never sent.
  await records.put(SINCE_KEY, now(), { expected: 0 });

  /** Claims that may be stored though nothing was sent on them. */
  const unsent = new LRUCache<string, string>({ max: REMEMBERED });

  const find = async (key: string): Promise<Claim | undefined> => {
    const record = await records.get<Claim>(keyOf(key));
    if (record === undefined || record.value.reply !== undefined) return record?.value;
    if (record.value.givenUp === true) return undefined;
    if (record.value.by === undefined || record.value.by !== unsent.get(key)) return record.value;
    return (await giveUp(key, record.value, record.version)) === undefined ? find(key) : undefined;
  };

  const giveUp = (key: string, claim: Claim, version: number): Promise<number | undefined> =>
    records.put(keyOf(key), { ...claim, givenUp: true }, { expected: version, expiresAt: now() + KEPT_MS });

  /** @returns the claim's version; `undefined`: there is another claim */
  const make = async (key: string, claim: Claim): Promise<number | undefined> => {
    const expiresAt = now() + KEPT_MS;
    const version = await records.put(keyOf(key), claim, { expected: 0, expiresAt });
    if (version !== undefined) return version;
    const record = await records.get<Claim>(keyOf(key));
    if (record?.value.givenUp !== true || record.value.reply !== undefined) return undefined;
    return records.put(keyOf(key), claim, { expected: record.version, expiresAt });
  };

  return {
    find,

    async once(key, to, send, sentNothing) {
      const by = randomUUID();
      const claim: Claim = { to, at: now(), by };
      const version = await make(key, claim).catch((error: unknown) => {
        unsent.set(key, by);
        throw error;
      });
      if (version === undefined) {
        const reply = (await find(key))?.reply;
        if (reply !== undefined) return reply;
        throw new ProviderError('another process is sending it, and its outcome is unknown', {
          outcomeUnknown: true,
        });
      }
      let reply: SendReply;
      try {
        reply = await send();
      } catch (error) {
        if (sentNothing(error)) await giveUp(key, claim, version).catch(() => void unsent.set(key, by));
        throw error;
      }
      // Without the note, a repeated request looks the answer up at the provider.
      try {
        const noted = await records.put(
          keyOf(key),
          { ...claim, reply },
          { expected: version, expiresAt: now() + KEPT_MS },
        );
        // A callback may have come first.
        if (noted === undefined && (await records.get<Claim>(keyOf(key)))?.value.reply === undefined)
          logger.warn({ notification: key }, 'the outcome of a message was not noted: there is another claim');
      } catch (error) {
        logger.warn({ err: error, notification: key }, 'the outcome of a message could not be noted');
      }
      return reply;
    },

    async learn(key, reply) {
      for (;;) {
        const record = await records.get<Claim>(keyOf(key));
        const known = record?.value.reply?.outcome;
        if (known === 'failed' || known === reply.outcome) return;
        const claim: Claim = { to: '', at: now(), ...record?.value, reply };
        if (
          (await records.put(keyOf(key), claim, { expected: record?.version ?? 0, expiresAt: now() + KEPT_MS })) !==
          undefined
        )
          return;
      }
    },

    async release(key, before) {
      const record = await records.get<Claim>(keyOf(key));
      if (record === undefined) return true;
      if (record.value.givenUp === true && record.value.reply === undefined) return true;
      if (record.value.reply !== undefined || record.value.at >= before) return false;
      return (await giveUp(key, record.value, record.version)) !== undefined;
    },

    async held(key, at) {
      await records.put(heldKeyOf(key), at, { expiresAt: at + KEPT_MS });
    },

    async neverClaimed(key, startedAt) {
      if ((await find(key)) !== undefined) return false;
      const since = await records.get<number>(SINCE_KEY);
      if (since === undefined) await records.put(SINCE_KEY, now(), { expected: 0 });
      if (since === undefined || since.value >= startedAt) return false;
      const unclaimedAt = now() - startedAt < KEPT_MS ? startedAt : (await records.get<number>(heldKeyOf(key)))?.value;
      return unclaimedAt !== undefined && now() - unclaimedAt < KEPT_MS;
    },
  };
}
