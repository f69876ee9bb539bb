/**
 * "Sends" by a line in the log, once for each attempt: a record is written first. Twilio's published test numbers fail
 * (https://www.twilio.com/docs/iam/test-credentials).
 */
import type { Logger } from 'pino';
import { sleep } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { type SendReply, notificationKey } from '../../messages/notifications.js';
import { ProviderError, RefusedError } from '../providerErrors.js';
import { reportLater } from '../simulatedEvents.js';
import { failTwice, refuseDuringOutage } from '../simulatedOutage.js';
import type { NotificationProvider } from './provider.js';
import { textOf } from './text.js';

const LEDGER_MS = 48 * 3_600_000;
const SINCE_KEY = 'notificationLedger';

const FAILING_NUMBERS: Readonly<Record<string, string>> = {
  '+15005550001': 'invalid number',
  '+15005550002': 'number can not be reached',
  '+15005550009': 'not a mobile number',
};
const GONE_DEVICE = 'device-token-gone';
/** Number for which messages are refused for an hour from the first request on. */
const BUSY = '+15005550005';
/** Number whose messages are sent, but the first answer is lost. */
const ANSWER_LOST = '+15005550007';
/** Number whose messages are accepted, and reported as undelivered later. */
const UNDELIVERED = '+15005550006';
/** Number whose messages are refused twice, and parked each time. */
const PARKED = '+15005550004';
const SLOW = '+15005550008';
const SLOW_MS = 3_000;

const causeOf = (to: readonly string[]): string | undefined =>
  to.every((token) => token === GONE_DEVICE) ? 'device token is gone' : FAILING_NUMBERS[to[0] ?? ''];

/** An address as the log may show it: `+44*******123`, `********cdef` */
export function masked(address: string): string {
  const shown = address.startsWith('+') ? 3 : 0;
  const end = Math.min(3, Math.max(0, address.length - 6));
  return (
    address.slice(0, shown) +
    '*'.repeat(Math.max(0, address.length - shown - end)) +
    (end === 0 ? '' : address.slice(-end))
  );
}

/** @throws UnavailableError when the records can't be reached */
export async function simulatedNotifications(
  records: Records,
  logger: Logger,
  now: () => number,
): Promise<NotificationProvider> {
  const keyOf = (attempt: Parameters<typeof notificationKey>[0]): string => `notification/${notificationKey(attempt)}`;
  // The time since which records are stored: a later request without a record was never sent.
  await records.put(SINCE_KEY, now(), { expected: 0 });

  return {
    async send(request) {
      const { gift_id, channel, to } = request;
      if (to.includes(BUSY)) {
        const key = `notificationBusy/${notificationKey(request)}`;
        await refuseDuringOutage(records, key, { what: 'busy', now, retainedMs: LEDGER_MS });
      }
      if (to.includes(PARKED)) {
        const refused = (): Error => new RefusedError('the simulated provider does not take this request');
        await failTwice(records, `notificationRefusals/${gift_id}`, refused, now() + LEDGER_MS);
      }
      if (to.includes(SLOW)) await sleep(SLOW_MS);
      const cause = causeOf(to);
      const reply: SendReply =
        cause === undefined
          ? {
              outcome: 'sent',
              provider: 'simulated',
              message_id: `msg_simulated_${notificationKey(request)}`,
              simulated: true,
            }
          : { outcome: 'failed', cause, simulated: true };
      if (reply.outcome === 'sent' && to.includes(UNDELIVERED))
        await reportLater(
          records,
          notificationKey(request),
          {
            about: 'notification',
            gift_id,
            attempt: request.attempt ?? 1,
            message_id: reply.message_id,
            cause: 'unreachable handset',
          },
          now(),
        );
      if ((await records.put(keyOf(request), reply, { expected: 0, expiresAt: now() + LEDGER_MS })) === undefined) {
        return (await records.get<SendReply>(keyOf(request)))?.value ?? reply;
      }
      const said = { gift: gift_id.slice(0, 6), channel, to: to.map(masked), characters: textOf(request).length };
      if (reply.outcome === 'sent') logger.info(said, 'simulated notification sent');
      else logger.info({ ...said, cause: reply.cause }, 'simulated notification failed');
      if (to.includes(ANSWER_LOST))
        throw new ProviderError('the answer of the simulated provider was lost', { outcomeUnknown: true });
      return reply;
    },

    async lookUp(request) {
      const { started_at, stopped } = request;
      const known = await records.get<SendReply>(keyOf(request));
      if (known !== undefined) return known.value;
      const since = await records.get<number>(SINCE_KEY);
      if (since === undefined) await records.put(SINCE_KEY, now(), { expected: 0 });
      const started = Date.parse(started_at);
      if (since === undefined || since.value >= started || now() - started >= LEDGER_MS) return { outcome: 'unknown' };
      if (stopped !== undefined) {
        const ended: SendReply = { outcome: 'failed', cause: stopped, simulated: true };
        if ((await records.put(keyOf(request), ended, { expected: 0, expiresAt: now() + LEDGER_MS })) === undefined)
          return (await records.get<SendReply>(keyOf(request)))?.value ?? { outcome: 'unknown' };
      }
      return { outcome: 'never' };
    },
  };
}
