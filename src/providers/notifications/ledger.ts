/**
 * Claims of notifications, made before sending: SMS and push providers know no idempotency keys. Losing claims loses
 * and repeats no message, since an unclaimed one is looked up at the provider.
 */
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { SEND_CLAIMS } from '../../domain/recordKeys.js';
import { randomUUID } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import type { SendReply } from '../../messages/notifications.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { ProviderError } from '../providerErrors.js';

/** The claim of one notification. Personal: `to`. */
interface Claim {
  /** Number that the message goes to; empty for a push message, and where the person was erased. */
  readonly to: string;
  /** Time of the claim, milliseconds since the epoch. */
  readonly at: number;
  /** Id of the call that made the claim; absent: a callback of the provider, or `end`, made it. */
  readonly by?: string;
  /** Nothing was sent on the claim. It is not deleted: a delayed deletion would remove the next claim. */
  readonly abandoned?: true;
  /** The outcome of the sending; absent: not known yet. */
  readonly reply?: SendReply;
}

/** Claims by `notificationKey`. Every method throws UnavailableError when the records can't be reached. */
export interface Ledger {
  /** The present claim. One on which this process certainly sent nothing is abandoned, and not returned. */
  find(key: string): Promise<Claim | undefined>;
  /**
   * Sends at most once: claims the notification, then runs `send`. After a failure that certainly sent nothing the
   * claim is abandoned; after an unknown outcome it remains.
   * @returns the answer, of this call or an earlier one.
   * @throws ProviderError with an unknown outcome while another process holds the claim; whatever `send` throws.
   */
  once(
    key: string,
    to: string,
    send: () => Promise<SendReply>,
    sentNothing: (error: unknown) => boolean,
  ): Promise<SendReply>;
  /** Records a provider's callback: the message was accepted, or failed, whatever the provider answered before. */
  learn(key: string, reply: SendReply): Promise<void>;
  /** Abandons an unanswered claim made before `before` (ms since the epoch). @returns whether no claim is left */
  release(key: string, before: number): Promise<boolean>;
  /**
   * Answers requests to send the notification with `reply` from now on, where there is no claim.
   * @throws RetryLaterError where there is one
   */
  end(key: string, reply: SendReply): Promise<void>;
  /** Notes that no claim existed at `at` (ms since the epoch): a limit may delay a message longer than claims last. */
  held(key: string, at: number): Promise<void>;
  /** Whether there was certainly no claim since `startedAt` (ms since the epoch). */
  neverClaimed(key: string, startedAt: number): Promise<boolean>;
}

const RETAINED_MS = 48 * 3_600_000;
const SINCE_KEY = 'sendLedger';
const REMEMBERED = 10_000;
/** When a look-up is repeated that an attempt to send came in the way of. */
export const AGAIN_MS = 1_000;

/** `now`: milliseconds since the epoch. @throws UnavailableError */
export async function openLedger(records: Records, now: () => number, logger: Logger): Promise<Ledger> {
  const keyOf = (notification: string): string => SEND_CLAIMS + notification;
  const heldKeyOf = (notification: string): string => `sendHeld/${notification}`;
  // The time since which claims are stored: a later request without a claim was never sent.
  await records.put(SINCE_KEY, now(), { expected: 0 });

  /** Ids of claims that may be stored though nothing was sent on them, by notification. */
  const unsent = new LRUCache<string, string>({ max: REMEMBERED });

  const find = async (key: string): Promise<Claim | undefined> => {
    const record = await records.get<Claim>(keyOf(key));
    if (record === undefined || record.value.reply !== undefined) return record?.value;
    if (record.value.abandoned === true) return undefined;
    if (record.value.by === undefined || record.value.by !== unsent.get(key)) return record.value;
    return (await giveUp(key, record.value, record.version)) === undefined ? find(key) : undefined;
  };

  const giveUp = (key: string, claim: Claim, version: number): Promise<number | undefined> =>
    records.put(keyOf(key), { ...claim, abandoned: true }, { expected: version, expiresAt: now() + RETAINED_MS });

  /** @returns the claim's version; `undefined`: there is another claim */
  const make = async (key: string, claim: Claim): Promise<number | undefined> => {
    const expiresAt = now() + RETAINED_MS;
    const version = await records.put(keyOf(key), claim, { expected: 0, expiresAt });
    if (version !== undefined) return version;
    const record = await records.get<Claim>(keyOf(key));
    if (record?.value.abandoned !== true || record.value.reply !== undefined) return undefined;
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
      // Without this record, a repeated request looks the answer up at the provider.
      try {
        const noted = await records.put(
          keyOf(key),
          { ...claim, reply },
          { expected: version, expiresAt: now() + RETAINED_MS },
        );
        // A callback may have recorded the outcome first.
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
          (await records.put(keyOf(key), claim, { expected: record?.version ?? 0, expiresAt: now() + RETAINED_MS })) !==
          undefined
        )
          return;
      }
    },

    async release(key, before) {
      const record = await records.get<Claim>(keyOf(key));
      if (record === undefined) return true;
      if (record.value.abandoned === true && record.value.reply === undefined) return true;
      if (record.value.reply !== undefined || record.value.at >= before) return false;
      return (await giveUp(key, record.value, record.version)) !== undefined;
    },

    async end(key, reply) {
      if ((await make(key, { to: '', at: now(), reply })) === undefined)
        throw new RetryLaterError('another attempt has just been made', AGAIN_MS);
    },

    async held(key, at) {
      await records.put(heldKeyOf(key), at, { expiresAt: at + RETAINED_MS });
    },

    async neverClaimed(key, startedAt) {
      if ((await find(key)) !== undefined) return false;
      const since = await records.get<number>(SINCE_KEY);
      if (since === undefined) await records.put(SINCE_KEY, now(), { expected: 0 });
      if (since === undefined || since.value >= startedAt) return false;
      const unclaimedAt =
        now() - startedAt < RETAINED_MS ? startedAt : (await records.get<number>(heldKeyOf(key)))?.value;
      return unclaimedAt !== undefined && now() - unclaimedAt < RETAINED_MS;
    },
  };
}
